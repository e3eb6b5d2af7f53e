// What a client in Go sees of a broker, through franz-go: one line for each record, as JSON.
//
//	go-client SETTINGS produce TOPIC COUNT | consume TOPIC COUNT | group TOPIC GROUP COUNT | share TOPIC GROUP COUNT |
//	accept TOPIC GROUP COUNT
//
// SETTINGS is a file of properties with librdkafka's names.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"golang.org/x/sys/unix"
)

const patience = 40 * time.Second

// Seen is a record as it was delivered, and what the client said of it.
type Seen struct {
	Offset    int64  `json:"offset"`
	Key       string `json:"key"`
	Value     string `json:"value"`
	Header    string `json:"header"`
	Delivered int32  `json:"delivered"`
	Said      string `json:"said"`
}

func main() {
	if len(os.Args) < 5 {
		fail(fmt.Errorf("usage: go-client SETTINGS produce|consume|group|share|accept TOPIC [GROUP] COUNT"))
	}
	options, err := settings(os.Args[1])
	check(err)
	what, topic := os.Args[2], os.Args[3]
	count, err := strconv.Atoi(os.Args[len(os.Args)-1])
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if what == "produce" {
		produce(ctx, options, topic, count)
		return
	}
	options = append(options, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	switch what {
	case "consume":
		consume(ctx, options, count)
	case "group":
		consume(ctx, append(options, kgo.ConsumerGroup(os.Args[4])), count)
	case "trail":
		trail(append(options, kgo.ShareGroup(os.Args[4]), kgo.ShareMaxRecords(int32(count))), count)
	case "share":
		share(ctx, append(options, kgo.ShareGroup(os.Args[4]), kgo.ShareAckCallback(answered)), count)
	case "accept":
		accept(ctx, append(options, kgo.ShareGroup(os.Args[4]), kgo.ShareAckCallback(answered)), count)
	default:
		fail(fmt.Errorf("%s is not known", what))
	}
}

func produce(ctx context.Context, options []kgo.Opt, topic string, count int) {
	client, err := kgo.NewClient(append(options, kgo.ProducerBatchCompression(kgo.ZstdCompression()))...)
	check(err)
	defer client.Close()
	check(client.Ping(ctx))
	records := make([]*kgo.Record, count)
	for number := range records {
		text := strconv.Itoa(number)
		records[number] = &kgo.Record{
			Topic: topic, Key: []byte("k" + text), Value: []byte(text),
			Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("of " + text)}},
		}
	}
	check(client.ProduceSync(ctx, records...).FirstErr())
	for _, record := range records {
		show(record, "")
	}
}

func consume(ctx context.Context, options []kgo.Opt, count int) {
	client, err := kgo.NewClient(options...)
	check(err)
	defer client.Close()
	check(client.Ping(ctx))
	for left := count; left > 0; {
		for _, record := range poll(ctx, client) {
			show(record, "")
			left--
		}
	}
	if _, generation := client.GroupMetadata(); generation >= 0 {
		check(client.CommitUncommittedOffsets(ctx))
	}
}

// share settles every record: of five one is released once, one rejected, one renewed and then accepted, two accepted.
func share(ctx context.Context, options []kgo.Opt, count int) {
	client, err := kgo.NewClient(options...)
	check(err)
	check(client.Ping(ctx))
	for left := count; left > 0; {
		var renewed []*kgo.Record
		for _, record := range poll(ctx, client) {
			number, err := strconv.Atoi(string(record.Value))
			check(err)
			status := kgo.AckAccept
			switch {
			case number%5 == 1 && record.DeliveryCount() == 1:
				status = kgo.AckRelease
			case number%5 == 2:
				status = kgo.AckReject
			case number%5 == 3:
				status = kgo.AckRenew
				renewed = append(renewed, record)
			}
			record.Ack(status)
			show(record, status.String())
			if status != kgo.AckRelease {
				left--
			}
		}
		check(client.FlushAcks(ctx))
		for _, record := range renewed {
			record.Ack(kgo.AckAccept)
		}
		check(client.FlushAcks(ctx))
	}
	client.Close()
}

// accept accepts every record.
func accept(ctx context.Context, options []kgo.Opt, count int) {
	client, err := kgo.NewClient(options...)
	check(err)
	check(client.Ping(ctx))
	for left := count; left > 0; {
		for _, record := range poll(ctx, client) {
			record.Ack(kgo.AckAccept)
			show(record, "accept")
			left--
		}
		check(client.FlushAcks(ctx))
	}
	client.Close()
}

// trail goes on while a broker is gone: what it could not say then comes again.
func trail(options []kgo.Opt, count int) {
	client, err := kgo.NewClient(options...)
	check(err)
	for {
		records := client.PollRecords(context.Background(), count).Records()
		for _, record := range records {
			fmt.Println("came", monotonic(), record.Offset, record.DeliveryCount(), record.Partition)
			record.Ack(kgo.AckAccept)
		}
		if len(records) == 0 {
			time.Sleep(50 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		client.FlushAcks(ctx)
		cancel()
	}
}

// monotonic reads the clock that other processes share, in nanoseconds.
func monotonic() int64 {
	var now unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return now.Nano()
}

func poll(ctx context.Context, client *kgo.Client) []*kgo.Record {
	fetches := client.PollFetches(ctx)
	check(fetches.Err())
	return fetches.Records()
}

func answered(_ *kgo.Client, results kgo.ShareAckResults) {
	check(results.Error())
}

func show(record *kgo.Record, said string) {
	seen := Seen{
		Offset: record.Offset, Key: string(record.Key), Value: string(record.Value),
		Delivered: record.DeliveryCount(), Said: said,
	}
	for _, header := range record.Headers {
		seen.Header = header.Key + " " + string(header.Value)
	}
	line, err := json.Marshal(seen)
	check(err)
	fmt.Println(string(line))
}

func settings(file string) ([]kgo.Opt, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	of := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, found := strings.Cut(line, "="); found {
			of[name] = value
		}
	}
	options := []kgo.Opt{kgo.SeedBrokers(strings.Split(of["bootstrap.servers"], ",")...)}
	protocol := of["security.protocol"]
	if strings.HasSuffix(protocol, "SSL") {
		authorities, err := os.ReadFile(of["ssl.ca.location"])
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authorities)
		options = append(options, kgo.DialTLSConfig(&tls.Config{RootCAs: pool}))
	}
	if strings.HasPrefix(protocol, "SASL") {
		options = append(options, kgo.SASL(mechanism(of)))
	}
	return options, nil
}

func mechanism(of map[string]string) sasl.Mechanism {
	user, password := of["sasl.username"], of["sasl.password"]
	switch of["sasl.mechanism"] {
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	return plain.Auth{User: user, Pass: password}.AsMechanism()
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
