// Telegraf's agent with its Kafka plugins copies TOPIC to TOPIC-out: BOOTSTRAP TOPIC GROUP
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/influxdata/telegraf/agent"
	"github.com/influxdata/telegraf/config"
	_ "github.com/influxdata/telegraf/plugins/inputs/kafka_consumer"
	_ "github.com/influxdata/telegraf/plugins/outputs/kafka"
	_ "github.com/influxdata/telegraf/plugins/parsers/value"
	_ "github.com/influxdata/telegraf/plugins/serializers/template"
)

const settings = `
[agent]
  interval = "500ms"
  flush_interval = "500ms"
  omit_hostname = true
[[inputs.kafka_consumer]]
  brokers = [%[1]q]
  topics = [%[2]q]
  consumer_group = %[3]q
  offset = "oldest"
  version = "3.6.0"
  data_format = "value"
  data_type = "string"
[[outputs.kafka]]
  brokers = [%[1]q]
  topic = "%[2]s-out"
  version = "3.6.0"
  idempotent_writes = true
  data_format = "template"
  template = '{{ .Field "value" }}'
`

func main() {
	made := config.NewConfig()
	text := fmt.Sprintf(settings, os.Args[1], os.Args[2], os.Args[3])
	if err := made.LoadConfigData([]byte(text), "telegraf.conf"); err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := agent.NewAgent(made).Run(ctx); err != nil {
		log.Fatal(err)
	}
}
