// segmentio's kafka-go: BOOTSTRAP TOPIC GROUP COUNT
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

func main() {
	bootstrap, topic, group := os.Args[1], os.Args[2], os.Args[3]
	count, _ := strconv.Atoi(os.Args[4])
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()

	codecs := []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd}
	for part, codec := range codecs {
		writer := kafka.Writer{
			Addr: kafka.TCP(bootstrap), Topic: topic, Balancer: &kafka.Hash{},
			RequiredAcks: kafka.RequireAll, Compression: codec, BatchTimeout: 5 * time.Millisecond,
		}
		for n := part; n < count; n += len(codecs) {
			message := kafka.Message{Key: fmt.Appendf(nil, "k%d", n%10), Value: fmt.Appendf(nil, "%d", n)}
			if err := writer.WriteMessages(ctx, message); err != nil {
				log.Fatal(err)
			}
			fmt.Println("produced", n)
		}
		if err := writer.Close(); err != nil {
			log.Fatal(err)
		}
	}

	read := 0
	for _, wanted := range []int{count / 2, count} {
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{bootstrap}, GroupID: group, Topic: topic,
			StartOffset: kafka.FirstOffset, MaxWait: 500 * time.Millisecond,
		})
		for ; read < wanted; read++ {
			message, err := reader.FetchMessage(ctx)
			if err != nil {
				log.Fatal(err)
			}
			if err := reader.CommitMessages(ctx, message); err != nil {
				log.Fatal(err)
			}
			fmt.Println("consumed", string(message.Value))
		}
		if err := reader.Close(); err != nil {
			log.Fatal(err)
		}
	}
}
