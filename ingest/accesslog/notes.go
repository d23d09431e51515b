package accesslog

// Notes are remarks of the parser on one record, for people.
type Notes uint64

// Each note is a machine word, printed by Strings.
const (
	NoteEscapeRepaired Notes = 1 << iota
	NoteBareDash
	NoteEmptyValue
	NotePrefixSkipped
	NoteBOM
	NoteNULsSkipped
	NoteResynchronised
	NoteUnwrapped
	NoteQuoteInHeader
	NoteLineTruncated
	NoteManyTries
	NoteRequestIDMaybeMade
	NoteBodyBytesOnly
	NoteLowConfidence
	NoteBadDuration
	NoteInvalidUTF8
	NoteListsDisagree
	NoteDuplicateMember
	// NoteDeadlineInferred says that nothing but the end, later than the caller's
	// deadline, shows that the caller had left.
	NoteDeadlineInferred
	// NoteZoneNotLogged says that the stamp's zone is the configuration's.
	NoteZoneNotLogged
	NoteLowerBounds    // duration and bytes are at least so much
	NoteCaptureUnnamed // captured headers of which nobody says whose they are
	NoteRedispatched   // a try went to another server than the one before
	// NoteDepartureUnread says that client_gone or departure holds no known word.
	NoteDepartureUnread
)

var noteWords = [...]string{
	"x_escape_repaired", "bare_dash_to_null", "empty_value_to_null", "prefix_skipped", "bom_removed",
	"leading_nul_removed", "resynchronised", "unwrapped", "quote_in_header", "line_truncated",
	"several_upstream_tries", "request_id_may_be_made_by_the_proxy", "body_bytes_only", "low_confidence",
	"bad_duration", "invalid_utf8", "lists_disagree", "duplicate_member",
	"departure_inferred_from_deadline",
	"zone_not_in_line", "lower_bounds", "capture_group_not_named", "redispatched", "departure_not_read",
}

// Strings lists the notes that are set, in a fixed order.
func (n Notes) Strings() []string {
	var out []string
	for i, w := range noteWords {
		if n&(1<<i) != 0 {
			out = append(out, w)
		}
	}
	return out
}
