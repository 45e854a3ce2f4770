// A small client and server of hq-interop (HTTP/0.9 over QUIC) on quic-go, to try Keyway's with.
//
//	quic-go get ADDRESS CA FILE...       fetches /FILE and checks it against ./FILE
//	quic-go serve CERTIFICATE KEY        serves the files of this folder, and prints its address
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "quic-go:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) > 3 && arguments[0] == "get":
		return get(arguments[1], arguments[2], arguments[3:])
	case len(arguments) == 3 && arguments[0] == "serve":
		return serve(arguments[1], arguments[2])
	}
	return errors.New("get ADDRESS CA FILE..., or serve CERTIFICATE KEY")
}

func get(address, ca string, files []string) error {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return errors.New("no certificate in " + ca)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config := &tls.Config{RootCAs: roots, NextProtos: []string{"hq-interop"}}
	connection, err := quic.DialAddr(ctx, address, config, nil)
	if err != nil {
		return err
	}
	defer connection.CloseWithError(0, "")
	// All at the same time.
	results := make(chan error)
	for _, file := range files {
		go func() { results <- check(ctx, connection, file) }()
	}
	for range files {
		if err := <-results; err != nil {
			return err
		}
	}
	return nil
}

func check(ctx context.Context, connection *quic.Conn, file string) error {
	stream, err := connection.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stream, "GET /%s\r\n", file); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	came, err := io.ReadAll(stream)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	expected, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(came, expected) {
		return fmt.Errorf("%s: %d bytes came, and they are not the file's", file, len(came))
	}
	return nil
}

func serve(certificate, key string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"hq-interop"}}
	listener, err := quic.ListenAddr("127.0.0.1:0", config, nil)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go func() {
			for {
				stream, err := connection.AcceptStream(context.Background())
				if err != nil {
					return
				}
				go answer(stream)
			}
		}()
	}
}

func answer(stream *quic.Stream) {
	defer stream.Close()
	line, err := bufio.NewReader(stream).ReadString('\n')
	if err != nil {
		stream.CancelWrite(1)
		return
	}
	path := strings.TrimPrefix(strings.TrimSpace(line), "GET /")
	file, err := os.Open(filepath.Base(path))
	if err != nil {
		stream.CancelWrite(2)
		return
	}
	defer file.Close()
	io.Copy(stream, file)
}
