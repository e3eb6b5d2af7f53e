// Other queues under measurement, with their users' recipes:
//
//	rivals nats|redis|rabbit create|fill|consume NAME=VALUE...
//
// Names and the trail: benches/queues/rivals.py.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// keys are dealt to so many shards, each of which one worker takes at a time: that is how order is kept
	shards      = 64
	recordBytes = 100
	check       = 200 * time.Millisecond
)

// record is what the load says of one; due is in milliseconds since the epoch, 0 for none.
type record struct{ key, due int64 }

func (r record) shard() int { return int(r.key % shards) }

type system interface {
	create(topic string)
	fill(load *load)
	consume(run *run)
}

type load struct {
	topic   string
	records []record
	rate    int64
	began   int64
	sent    []int64
}

// next waits until a record is due to be sent, and notes when that was.
func (l *load) next(number int) {
	if l.rate > 0 {
		at := l.began + int64(number)*int64(time.Second)/l.rate
		time.Sleep(time.Duration(at - time.Now().UnixNano()))
	}
	l.sent[number] = time.Now().UnixNano()
}

func value(number int) []byte {
	bytes := make([]byte, recordBytes)
	binary.BigEndian.PutUint64(bytes, uint64(number))
	return bytes
}

func numberOf(value []byte) int64 { return int64(binary.BigEndian.Uint64(value)) }

type row struct{ record, began, ended, delivery int64 }

// run is one consumption of a load.
type run struct {
	topic, group                    string
	records, fails, seconds, runMax int64
	workers, poll                   int
	work                            time.Duration
	inOrder, isDelayed              bool
	accepted                        atomic.Int64
	end                             atomic.Int64
	free                            chan struct{}
	lock                            sync.Mutex
	rows                            []row
}

func (r *run) isOver() bool {
	end := r.end.Load()
	return r.accepted.Load() >= r.records || (end > 0 && time.Now().UnixNano() > end)
}

// handle works on a record and returns whether that went well.
func (r *run) handle(number, delivery int64) bool {
	r.free <- struct{}{}
	began := time.Now().UnixNano()
	r.end.CompareAndSwap(0, began+r.seconds*int64(time.Second))
	if r.work > 0 {
		time.Sleep(r.work)
	}
	ended := time.Now().UnixNano()
	<-r.free
	r.lock.Lock()
	r.rows = append(r.rows, row{number, began, ended, delivery})
	r.lock.Unlock()
	if delivery <= r.fails {
		return false
	}
	r.accepted.Add(1)
	return true
}

// backoff is the wait after a delivery that failed.
func backoff(delivery int64) time.Duration { return time.Second << (delivery - 1) }

// each runs a function in so many goroutines and waits for all of them.
func each(count int, function func(int)) {
	var all sync.WaitGroup
	for number := range count {
		all.Go(func() { function(number) })
	}
	all.Wait()
}

func main() {
	named := map[string]string{}
	for _, word := range os.Args[3:] {
		name, value, _ := strings.Cut(word, "=")
		named[name] = value
	}
	number := func(name string) int64 {
		value, err := strconv.ParseInt(named[name], 10, 64)
		must(err)
		return value
	}
	made := map[string]func(string) system{"nats": newNats, "redis": newRedis, "rabbit": newRabbit}[os.Args[1]]
	queue := made(named["address"])
	switch os.Args[2] {
	case "create":
		queue.create(named["topic"])
		return
	case "fill":
		load := &load{topic: named["topic"], rate: number("rate"), began: number("began_ns")}
		load.records = read(named["load"])
		load.sent = make([]int64, len(load.records))
		queue.fill(load)
		write(named["sent"], load.sent, binary.NativeEndian)
		return
	}
	run := &run{
		topic: named["topic"], group: named["group"], records: number("records"), fails: number("fails"),
		seconds: number("seconds"), runMax: number("run_max"), workers: int(number("workers")), poll: int(number("poll")),
		work: time.Duration(number("work_us")) * time.Microsecond, inOrder: named["order"] == "KEY",
		isDelayed: named["delayed"] == "1",
	}
	run.free = make(chan struct{}, run.workers)
	queue.consume(run)
	write(named["trail"], run.rows, binary.BigEndian)
}

func read(path string) []record {
	file, err := os.ReadFile(path)
	must(err)
	records := make([]record, len(file)/16)
	for number := range records {
		at := file[number*16:]
		records[number] = record{int64(binary.NativeEndian.Uint64(at)), int64(binary.NativeEndian.Uint64(at[8:]))}
	}
	return records
}

func write(path string, rows any, order binary.ByteOrder) {
	file, err := os.Create(path)
	must(err)
	must(binary.Write(file, order, rows))
	must(file.Close())
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
