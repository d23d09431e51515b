package ingest

import (
	"encoding/binary"
	"sync"

	"github.com/segmentio/kafka-go"
)

// holderBalancer gives all partitions of all topics to one member of the group,
// the holder, since only who sees every record can tell a repeat from an
// original. The holder stays the same for as long as it is there: what it has in
// memory would have to be read again by another one. Every member says in its
// user data in which generation it last was the holder.
type holderBalancer struct {
	mu   sync.Mutex
	held int32 // generation; 0 for never
}

// holderProtocol is what members must agree on. The number goes up whenever the
// rule changes: members with different rules must not share a group.
const holderProtocol = "auditor-holder-1"

func (b *holderBalancer) ProtocolName() string { return holderProtocol }

func (b *holderBalancer) UserData() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return binary.BigEndian.AppendUint32(nil, uint32(b.held)), nil
}

// holds notes that this member is the holder of a generation.
func (b *holderBalancer) holds(generation int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = generation
}

// AssignGroups is called at the leader of the group. Of the members that read
// the most topics (while a new configuration is rolled out not all read the
// same), it is the one that was the holder last; then the one with the smallest
// id, so that every leader decides alike.
func (b *holderBalancer) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	assignments := kafka.GroupMemberAssignments{}
	var holder *kafka.GroupMember
	for i := range members {
		m := &members[i]
		assignments[m.ID] = map[string][]int{}
		if holder == nil || before(m, holder) {
			holder = m
		}
	}
	if holder == nil {
		return assignments
	}
	for _, topic := range holder.Topics {
		for _, p := range partitions {
			if p.Topic == topic {
				assignments[holder.ID][topic] = append(assignments[holder.ID][topic], p.ID)
			}
		}
	}
	return assignments
}

func before(a, b *kafka.GroupMember) bool {
	if len(a.Topics) != len(b.Topics) {
		return len(a.Topics) > len(b.Topics)
	}
	if ha, hb := heldIn(a), heldIn(b); ha != hb {
		return ha > hb
	}
	return a.ID < b.ID
}

func heldIn(m *kafka.GroupMember) uint32 {
	if len(m.UserData) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(m.UserData)
}
