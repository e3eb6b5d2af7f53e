package main

import (
	"context"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumeTopics("jobs"),
		kgo.ShareGroup("workers"),
	)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	for {
		for _, job := range client.PollFetches(context.Background()).Records() {
			fmt.Println(string(job.Value))
			job.Ack(kgo.AckAccept)
		}
	}
}
