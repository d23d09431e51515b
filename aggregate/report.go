package aggregate

// Schema names the shape of a report.
const Schema = "auditor.report/1"

// Report is the audit of a log, as `replay --output json` prints it.
type Report struct {
	Schema       string          `json:"schema"`
	From         string          `json:"from"`
	To           string          `json:"to"`
	Input        Input           `json:"input"`
	Total        Measure         `json:"total"`
	Dependencies []Dependency    `json:"dependencies"`
	Worst        []WorstQuestion `json:"worst_questions"`
	Windows      []Window        `json:"windows"`
}

// Input says what was read.
type Input struct {
	Lines       uint64            `json:"lines"` // that are not blank
	Bytes       uint64            `json:"bytes"`
	Arrivals    uint64            `json:"arrivals"`
	Duplicates  uint64            `json:"duplicates"`
	Undecidable uint64            `json:"duplicates_undecidable"`
	Coarse      uint64            `json:"coarse_stamps"` // arrivals, copies included, known to a second at best
	Ignored     map[string]uint64 `json:"ignored"`
	Quarantined map[string]uint64 `json:"quarantined"`
	Late        uint64            `json:"late"`
	Clamped     uint64            `json:"clamped"`
}

// Dependency is the measure of one dependency and of its parts.
type Dependency struct {
	Name string `json:"dependency"`
	Measure
	Routes      []RouteMeasure      `json:"routes"`
	Originators []OriginatorMeasure `json:"originators"`
	Peers       []PeerMeasure       `json:"peers"`
}

// RouteMeasure is the measure of one route of a dependency.
type RouteMeasure struct {
	Name string `json:"route"`
	Measure
}

// OriginatorMeasure is the measure of what one originator asked. Claimed keys
// stand under "claimed:" and their scheme, what could not be attributed under "".
type OriginatorMeasure struct {
	Name string `json:"originator"`
	Measure
}

// PeerMeasure is the measure of what came by one peer.
type PeerMeasure struct {
	Name string `json:"peer"`
	Measure
}

// WorstQuestion is one of the questions with the most arrivals.
type WorstQuestion struct {
	KeyHash    string   `json:"key_hash"`
	Dependency string   `json:"dependency"`
	Route      string   `json:"route"`
	Originator string   `json:"originator"`
	Arrivals   uint32   `json:"arrivals"`
	First      string   `json:"first"`
	Last       string   `json:"last"`
	Peers      []string `json:"peers"`
}

// Window is the measure of everything in a stretch of time.
type Window struct {
	From string `json:"from"`
	To   string `json:"to"`
	Measure
}
