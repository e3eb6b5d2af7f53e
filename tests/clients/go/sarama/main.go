// IBM's Sarama: BOOTSTRAP TOPIC GROUP COUNT
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

type member struct {
	read   *int
	wanted int
	stop   context.CancelFunc
}

func (m *member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case record, open := <-claim.Messages():
			if !open {
				return nil
			}
			turn <- struct{}{}
			if *m.read < m.wanted {
				session.MarkMessage(record, "")
				session.Commit()
				fmt.Println("consumed", string(record.Value))
				if *m.read++; *m.read == m.wanted {
					m.stop()
				}
			}
			<-turn
		case <-session.Context().Done():
			return nil
		}
	}
}

// claims are read side by side: one record at a time
var turn = make(chan struct{}, 1)

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	return config
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	brokers, topic, group := []string{os.Args[1]}, os.Args[2], os.Args[3]
	count, _ := strconv.Atoi(os.Args[4])

	codecs := []sarama.CompressionCodec{
		sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy,
		sarama.CompressionLZ4, sarama.CompressionZSTD,
	}
	for part, codec := range codecs {
		config := settings()
		config.Producer.Compression = codec
		producer, err := sarama.NewSyncProducer(brokers, config)
		must(err)
		for n := part; n < count; n += len(codecs) {
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{
				Topic: topic,
				Key:   sarama.StringEncoder(fmt.Sprintf("k%d", n%10)),
				Value: sarama.StringEncoder(strconv.Itoa(n)),
			})
			must(err)
			fmt.Println("produced", n)
		}
		must(producer.Close())
	}

	config := settings()
	config.Producer.Transaction.ID = group
	producer, err := sarama.NewSyncProducer(brokers, config)
	must(err)
	for _, prefix := range []string{"bad-", ""} {
		must(producer.BeginTxn())
		for n := range count {
			value := sarama.StringEncoder(prefix + strconv.Itoa(n))
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic + "-tx", Value: value})
			must(err)
		}
		if prefix == "" {
			must(producer.CommitTxn())
		} else {
			must(producer.AbortTxn())
		}
	}
	must(producer.Close())
	for n := range count {
		fmt.Println("committed", n)
	}

	read := 0
	for _, wanted := range []int{count / 2, count} {
		config := settings()
		config.Consumer.Offsets.Initial = sarama.OffsetOldest
		config.Consumer.Offsets.AutoCommit.Enable = false
		config.Consumer.MaxWaitTime = 500 * time.Millisecond
		consumer, err := sarama.NewConsumerGroup(brokers, group, config)
		must(err)
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
		for read < wanted && ctx.Err() == nil {
			must(consumer.Consume(ctx, []string{topic}, &member{&read, wanted, stop}))
		}
		stop()
		must(consumer.Close())
	}
	if read < count {
		log.Fatalf("%d records were read", read)
	}
}
