// Drives go-nsq as ../README.md defines.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nsqio/go-nsq"
)

func main() {
	verbs := map[string]func(options) error{
		"publish":          publish,
		"publish_multi":    publishMulti,
		"publish_deferred": publishDeferred,
		"consume":          consume,
	}
	if err := verbs[os.Args[1]](parse(os.Args[2:])); err != nil {
		log.Fatal(err)
	}
}

func publish(options options) error {
	producer, err := nsq.NewProducer(options["nsqd"], config(options))
	if err != nil {
		return err
	}
	defer producer.Stop()
	for number := range options.int("count", 0) {
		for {
			err := producer.Publish(options["topic"], options.body(number))
			if err == nil {
				break
			}
			log.Print(err)
			time.Sleep(retryPause)
		}
		acknowledged(number)
		time.Sleep(options.milliseconds("pace"))
	}
	return nil
}

func publishMulti(options options) error {
	producer, err := nsq.NewProducer(options["nsqd"], config(options))
	if err != nil {
		return err
	}
	defer producer.Stop()
	bodies := make([][]byte, options.int("count", 0))
	for number := range bodies {
		bodies[number] = options.body(number)
	}
	if err := producer.MultiPublish(options["topic"], bodies); err != nil {
		return err
	}
	for number := range bodies {
		acknowledged(number)
	}
	return nil
}

func publishDeferred(options options) error {
	producer, err := nsq.NewProducer(options["nsqd"], config(options))
	if err != nil {
		return err
	}
	defer producer.Stop()
	err = producer.DeferredPublish(options["topic"], options.milliseconds("delay"), options.body(0))
	if err == nil {
		acknowledged(0)
	}
	return err
}

func consume(options options) error {
	consumer, err := nsq.NewConsumer(options["topic"], options["channel"], config(options))
	if err != nil {
		return err
	}
	consumer.AddConcurrentHandlers(&handler{options: options}, options.int("max_in_flight", 1))
	if lookupd := options["lookupd"]; lookupd != "" {
		err = consumer.ConnectToNSQLookupd(lookupd)
	} else {
		err = consumer.ConnectToNSQD(options["nsqd"])
	}
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	consumer.Stop()
	<-consumer.StopChan
	return nil
}

type handler struct {
	options  options
	failures atomic.Int64
}

// HandleMessage finishes the message when it returns nil and backs off when it returns an error.
func (h *handler) HandleMessage(message *nsq.Message) error {
	name, _, _ := bytes.Cut(message.Body, []byte(" "))
	fmt.Printf("message %s %d %d %d\n", name, message.Attempts, len(message.Body), time.Since(started).Milliseconds())
	if h.failures.Add(1) <= int64(h.options.int("fail", 0)) {
		return errors.New("told to fail")
	}
	if delay := h.options.milliseconds("requeue"); delay > 0 && message.Attempts == 1 {
		message.RequeueWithoutBackoff(delay)
		return nil
	}
	h.hold(message)
	return nil
}

func (h *handler) hold(message *nsq.Message) {
	done := time.After(h.options.milliseconds("hold"))
	var touch <-chan time.Time
	if every := h.options.milliseconds("touch"); every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		touch = ticker.C
	}
	for {
		select {
		case <-done:
			return
		case <-touch:
			message.Touch()
		}
	}
}

func config(options options) *nsq.Config {
	config := nsq.NewConfig()
	config.MaxInFlight = options.int("max_in_flight", 1)
	config.SampleRate = int32(options.int("sample_rate", 0))
	config.AuthSecret = options["auth"]
	config.Snappy = options["compression"] == "snappy"
	config.Deflate = options["compression"] == "deflate"
	config.LookupdPollInterval = reconnectPause
	config.DefaultRequeueDelay = 0
	config.BackoffMultiplier = firstBackoff / 2
	config.MaxAttempts = 0
	if file := options["tls"]; file != "" {
		config.TlsV1 = true
		config.TlsConfig = &tls.Config{RootCAs: authority(file)}
	}
	return config
}

func authority(file string) *x509.CertPool {
	pem, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return pool
}

func acknowledged(number int) {
	fmt.Printf("acknowledged m%d\n", number)
}

// options are the arguments name=value.
type options map[string]string

func parse(arguments []string) options {
	options := options{}
	for _, argument := range arguments {
		name, value, _ := strings.Cut(argument, "=")
		options[name] = value
	}
	return options
}

func (o options) int(name string, otherwise int) int {
	text, given := o[name]
	if !given {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func (o options) milliseconds(name string) time.Duration {
	return time.Duration(o.int(name, 0)) * time.Millisecond
}

func (o options) body(number int) []byte {
	name := fmt.Sprintf("m%d", number)
	if padding := o.int("size", 0) - len(name) - 1; padding >= 0 {
		name += " " + strings.Repeat(".", padding)
	}
	return []byte(name)
}

var started = time.Now()

const (
	retryPause     = 50 * time.Millisecond
	reconnectPause = time.Second
	firstBackoff   = time.Second
)
