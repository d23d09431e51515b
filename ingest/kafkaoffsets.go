package ingest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

// topology is the number of partitions of every topic that is there, and why the
// others cannot be read.
type topology struct {
	partitions map[string]int
	missing    map[string]error
}

// topology asks the cluster. The answer is as old as tune.metadataTTL at most. It
// is an error if the cluster does not know for sure, as while leaders change.
func (l *kafkaLink) topology(ctx context.Context, topics []string) (topology, error) {
	t := topology{map[string]int{}, map[string]error{}}
	ctx, cancel := context.WithTimeout(ctx, l.request)
	defer cancel()
	res, err := l.client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return t, l.named("topics", l.unreached(ctx, err))
	}
	for _, topic := range res.Topics {
		switch {
		case topic.Error != nil && !errors.Is(topic.Error, kafka.UnknownTopicOrPartition) &&
			!errors.Is(topic.Error, kafka.TopicAuthorizationFailed) && !errors.Is(topic.Error, kafka.InvalidTopic):
			return t, l.named("topic "+topic.Name, topic.Error)
		case topic.Error != nil:
			t.missing[topic.Name] = l.named("topic "+topic.Name, topic.Error)
		case len(topic.Partitions) == 0:
			t.missing[topic.Name] = fmt.Errorf("topic %s: %w yet", topic.Name, ErrKafkaNoTopic)
		default:
			t.partitions[topic.Name] = len(topic.Partitions)
		}
	}
	return t, nil
}

// unreached says that no broker answered where kafka-go only knows that the time
// was up.
func (l *kafkaLink) unreached(ctx context.Context, err error) error {
	if isTimeout(err) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return fmt.Errorf("brokers %v: %w within %v", l.brokers, ErrKafkaNoBroker, l.request)
	}
	return err
}

// leader is the address of the broker to read a partition from.
func (l *kafkaLink) leader(ctx context.Context, topic string, partition int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.request)
	defer cancel()
	res, err := l.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return "", l.unreached(ctx, err)
	}
	for _, t := range res.Topics {
		if t.Name == topic && t.Error != nil {
			return "", t.Error
		}
		for _, p := range t.Partitions {
			switch {
			case t.Name != topic || p.ID != partition:
			case p.Leader.Host == "":
				return "", kafka.LeaderNotAvailable
			default:
				return net.JoinHostPort(p.Leader.Host, strconv.Itoa(p.Leader.Port)), nil
			}
		}
	}
	return "", kafka.UnknownTopicOrPartition
}

// edges are where the log of a partition begins and ends now.
func (l *kafkaLink) edges(ctx context.Context, topic string, partition int) (first, end int64, err error) {
	o, err := l.offsets(ctx, topic, kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition))
	return o.FirstOffset, o.LastOffset, err
}

// since is the offset of the first record of a time or later, the end of the log
// if there is none.
func (l *kafkaLink) since(ctx context.Context, topic string, partition int, at time.Time) (int64, error) {
	o, err := l.offsets(ctx, topic, kafka.TimeOffsetOf(partition, at), kafka.LastOffsetOf(partition))
	for offset := range o.Offsets {
		if offset >= 0 {
			return offset, err
		}
	}
	return o.LastOffset, err
}

func (l *kafkaLink) offsets(ctx context.Context, topic string, requests ...kafka.OffsetRequest) (kafka.PartitionOffsets, error) {
	ctx, cancel := context.WithTimeout(ctx, l.request)
	defer cancel()
	res, err := l.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: requests}})
	if err != nil {
		return kafka.PartitionOffsets{}, l.unreached(ctx, err)
	}
	for _, o := range res.Topics[topic] {
		return o, o.Error
	}
	return kafka.PartitionOffsets{}, kafka.UnknownTopicOrPartition
}

// committed reads the positions that the group has left. Offset is -1 where it
// left none.
func (l *kafkaLink) committed(ctx context.Context, partitions map[string][]int) (map[topicPartition]Position, error) {
	ctx, cancel := context.WithTimeout(ctx, l.request)
	defer cancel()
	res, err := l.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: l.group, Topics: partitions})
	if err == nil && !errors.Is(res.Error, kafka.GroupIdNotFound) { // a group that never was has left nothing
		err = res.Error
	}
	if err != nil {
		return nil, l.named("positions", l.unreached(ctx, err))
	}
	left := map[topicPartition]Position{}
	for topic, list := range res.Topics {
		for _, p := range list {
			if p.Error != nil {
				return nil, l.named(fmt.Sprintf("position of %s/%d", topic, p.Partition), p.Error)
			}
			left[topicPartition{topic, p.Partition}] = Position{p.CommittedOffset, p.Metadata}
		}
	}
	for topic, list := range partitions {
		for _, p := range list {
			if _, ok := left[topicPartition{topic, p}]; !ok && res.Error != nil {
				left[topicPartition{topic, p}] = Position{Offset: -1}
			} else if !ok {
				return nil, fmt.Errorf("position of %s/%d: the broker does not tell it", topic, p)
			}
		}
	}
	return left, nil
}

// membership is what a commit must carry so that the broker can refuse one of a
// member that the group has given up.
type membership struct {
	generation int32
	member     string
}

// commit keeps positions. It returns, for those that were not kept, why.
func (l *kafkaLink) commit(ctx context.Context, as membership, positions map[topicPartition]Position) map[topicPartition]error {
	ctx, cancel := context.WithTimeout(ctx, l.request)
	defer cancel()
	req := &kafka.OffsetCommitRequest{
		GroupID: l.group, GenerationID: int(as.generation), MemberID: as.member,
		Topics: map[string][]kafka.OffsetCommit{},
	}
	refused := map[topicPartition]error{}
	for tp, pos := range positions {
		req.Topics[tp.topic] = append(req.Topics[tp.topic], kafka.OffsetCommit{Partition: tp.partition, Offset: pos.Offset, Metadata: pos.Metadata})
		refused[tp] = errors.New("the broker does not say whether it was kept")
	}
	res, err := l.client.OffsetCommit(ctx, req)
	if err != nil {
		err = l.named("commit", l.unreached(ctx, err))
		for tp := range refused {
			refused[tp] = err
		}
		return refused
	}
	for topic, list := range res.Topics {
		for _, p := range list {
			tp := topicPartition{topic, p.Partition}
			if p.Error == nil {
				delete(refused, tp)
			} else {
				refused[tp] = l.named("commit", p.Error)
			}
		}
	}
	return refused
}
