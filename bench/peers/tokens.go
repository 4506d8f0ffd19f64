// Measures the cost of signing and verifying tokens with Go's standard library, on one core.
//
// Arguments: seconds for each operation. Prints one JSON object per line: first the version, then one
// for each operation, with the ids of the benchmark. Exits with status 1 if a token does not verify,
// or if a forged one does.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	issuer  = "https://gateway.bench.test"
	subject = "bench-caller"
	rsaBits = 2048
	half    = 32
	// The approximate time between two readings of the clock.
	slice = 10 * time.Millisecond
)

var encoding = base64.RawURLEncoding.Strict()

type claims struct {
	Iss      string   `json:"iss"`
	Aud      string   `json:"aud"`
	Sub      string   `json:"sub"`
	ClientID string   `json:"client_id"`
	Roles    []string `json:"roles"`
	Iat      int64    `json:"iat"`
	Exp      int64    `json:"exp"`
	Jti      string   `json:"jti"`
}

type header struct {
	Alg string `json:"alg"`
	Kid string `json:"kid"`
	Typ string `json:"typ"`
}

type scheme struct {
	name   string
	sign   func(input []byte) ([]byte, error)
	verify func(input, signature []byte) bool
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

func issue(s scheme) (string, error) {
	now := time.Now().Unix()
	head, err := json.Marshal(header{Alg: s.name, Kid: "bench", Typ: "at+jwt"})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims{
		Iss: issuer, Aud: issuer, Sub: subject, ClientID: "bench", Roles: []string{"writer"},
		Iat: now, Exp: now + 900, Jti: newUUID(),
	})
	if err != nil {
		return "", err
	}
	input := encoding.EncodeToString(head) + "." + encoding.EncodeToString(body)
	signature, err := s.sign([]byte(input))
	if err != nil {
		return "", err
	}
	return input + "." + encoding.EncodeToString(signature), nil
}

func verify(s scheme, token string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return errors.New("segments")
	}
	var head header
	var body claims
	for i, into := range []any{&head, &body} {
		text, err := encoding.DecodeString(parts[i])
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, into); err != nil {
			return err
		}
	}
	signature, err := encoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	if head.Alg != s.name || head.Typ != "at+jwt" || head.Kid != "bench" {
		return errors.New("header")
	}
	if !s.verify([]byte(token[:len(parts[0])+1+len(parts[1])]), signature) {
		return errors.New("signature")
	}
	now := time.Now().Unix()
	if body.Iss != issuer || body.Aud != issuer || body.Sub != subject || body.Exp <= now {
		return errors.New("claims")
	}
	return nil
}

func schemes() []scheme {
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, rsaBits)
	check(err)
	edPublic, edKey, err := ed25519.GenerateKey(rand.Reader)
	check(err)
	return []scheme{
		{"ES256", func(input []byte) ([]byte, error) {
			digest := sha256.Sum256(input)
			r, s, err := ecdsa.Sign(rand.Reader, ecKey, digest[:])
			if err != nil {
				return nil, err
			}
			signature := make([]byte, 2*half)
			r.FillBytes(signature[:half])
			s.FillBytes(signature[half:])
			return signature, nil
		}, func(input, signature []byte) bool {
			if len(signature) != 2*half {
				return false
			}
			digest := sha256.Sum256(input)
			r, s := new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:])
			return ecdsa.Verify(&ecKey.PublicKey, digest[:], r, s)
		}},
		{"RS256", func(input []byte) ([]byte, error) {
			digest := sha256.Sum256(input)
			return rsa.SignPKCS1v15(nil, rsaKey, crypto.SHA256, digest[:])
		}, func(input, signature []byte) bool {
			digest := sha256.Sum256(input)
			return rsa.VerifyPKCS1v15(&rsaKey.PublicKey, crypto.SHA256, digest[:], signature) == nil
		}},
		{"EdDSA", func(input []byte) ([]byte, error) {
			return ed25519.Sign(edKey, input), nil
		}, func(input, signature []byte) bool {
			return ed25519.Verify(edPublic, input, signature)
		}},
	}
}

// measure repeats an operation for the given time and prints the time of one operation.
func measure(id string, seconds float64, operation func() error) {
	size := 1
	for {
		start := time.Now()
		for range size {
			check(operation())
		}
		if time.Since(start) >= slice {
			break
		}
		size *= 2
	}
	operations, start := 0, time.Now()
	for time.Since(start).Seconds() < seconds {
		for range size {
			check(operation())
		}
		operations += size
	}
	micros := float64(time.Since(start).Nanoseconds()) / 1000 / float64(operations)
	tell(map[string]any{"id": id, "micros": micros, "operations": operations})
}

func tell(line map[string]any) {
	text, err := json.Marshal(line)
	check(err)
	fmt.Println(string(text))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	check(err)
	tell(map[string]any{"version": runtime.Version() + ", standard library"})
	measure("uuid", seconds, func() error { newUUID(); newUUID(); return nil })
	for _, s := range schemes() {
		token, err := issue(s)
		check(err)
		if verify(s, forged(token)) == nil {
			check(errors.New(s.name + ": a forged token verifies"))
		}
		measure("issue-"+s.name, seconds, func() error { _, err := issue(s); return err })
		measure("verify-"+s.name, seconds, func() error { return verify(s, token) })
	}
}

// forged returns the token with another character in the middle of the signature.
func forged(token string) string {
	at := len(token) - 10
	other := "A"
	if token[at] == 'A' {
		other = "B"
	}
	return token[:at] + other + token[at+1:]
}
