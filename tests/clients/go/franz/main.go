// franz-go, with a consumer group and a share group: BOOTSTRAP TOPIC GROUP COUNT
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func connect(options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(os.Args[1]))...)
	must(err)
	return client
}

func main() {
	topic, group := os.Args[2], os.Args[3]
	count, _ := strconv.Atoi(os.Args[4])
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()

	codecs := []kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(),
		kgo.Lz4Compression(), kgo.ZstdCompression(),
	}
	for part, codec := range codecs {
		client := connect(kgo.ProducerBatchCompression(codec))
		for n := part; n < count; n += len(codecs) {
			record := kgo.KeySliceRecord(fmt.Appendf(nil, "k%d", n%10), fmt.Appendf(nil, "%d", n))
			record.Topic = topic
			must(client.ProduceSync(ctx, record).FirstErr())
			fmt.Println("produced", n)
		}
		client.Close()
	}

	client := connect(kgo.TransactionalID(group))
	for _, prefix := range []string{"bad-", ""} {
		must(client.BeginTransaction())
		for n := range count {
			record := kgo.StringRecord(prefix + strconv.Itoa(n))
			record.Topic = topic + "-tx"
			must(client.ProduceSync(ctx, record).FirstErr())
		}
		must(client.EndTransaction(ctx, kgo.TransactionEndTry(prefix == "")))
	}
	client.Close()
	for n := range count {
		fmt.Println("committed", n)
	}

	read := 0
	for _, wanted := range []int{count / 2, count} {
		client := connect(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(500*time.Millisecond))
		for read < wanted {
			fetches := client.PollRecords(ctx, min(10, wanted-read))
			must(fetches.Err0())
			for _, record := range fetches.Records() {
				must(client.CommitRecords(ctx, record))
				fmt.Println("consumed", string(record.Value))
				read++
			}
		}
		client.Close()
	}
}
