// Signs and verifies access tokens with nothing but Go's standard library.
//
// Usage: program verify|mint, a JSON document on standard input, another on standard output.
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
	"slices"
	"strings"
)

type request struct {
	Issuer   string            `json:"issuer"`
	Audience string            `json:"audience"`
	Now      float64           `json:"now"`
	JWKS     keySet            `json:"jwks"`
	Tokens   map[string]string `json:"tokens"`
	Claims   map[string]any    `json:"claims"`
}

type keySet struct {
	Keys []jwk `json:"keys"`
}

type jwk struct {
	Kty string `json:"kty"`
	Crv string `json:"crv,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
	Kid string `json:"kid"`
	Alg string `json:"alg"`
	Use string `json:"use"`
}

type verdict struct {
	Claims map[string]any `json:"claims,omitempty"`
	Error  string         `json:"error,omitempty"`
}

var raw = base64.RawURLEncoding.Strict()

func main() {
	var in request
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		fail(err)
	}
	var out any
	switch os.Args[1] {
	case "verify":
		verdicts := map[string]verdict{}
		for name, token := range in.Tokens {
			claims, err := verify(token, in)
			if err != nil {
				verdicts[name] = verdict{Error: err.Error()}
			} else {
				verdicts[name] = verdict{Claims: claims}
			}
		}
		out = verdicts
	case "mint":
		minted, err := mint(in.Claims)
		if err != nil {
			fail(err)
		}
		out = minted
	default:
		fail(errors.New("verify or mint"))
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func verify(token string, in request) (map[string]any, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("not three parts")
	}
	var header struct{ Alg, Kid, Typ string }
	if err := decode(parts[0], &header); err != nil {
		return nil, err
	}
	if header.Typ != "at+jwt" {
		return nil, errors.New("typ")
	}
	at := slices.IndexFunc(in.JWKS.Keys, func(key jwk) bool { return key.Kid == header.Kid })
	if at < 0 || in.JWKS.Keys[at].Alg != header.Alg {
		return nil, errors.New("no such key")
	}
	signature, err := raw.DecodeString(parts[2])
	if err != nil {
		return nil, err
	}
	if !signedBy(in.JWKS.Keys[at], []byte(parts[0]+"."+parts[1]), signature) {
		return nil, errors.New("signature")
	}
	claims := map[string]any{}
	if err := decode(parts[1], &claims); err != nil {
		return nil, err
	}
	if claims["iss"] != in.Issuer {
		return nil, errors.New("iss")
	}
	if claims["aud"] != in.Audience {
		return nil, errors.New("aud")
	}
	if exp, ok := claims["exp"].(float64); !ok || exp <= in.Now {
		return nil, errors.New("exp")
	}
	return claims, nil
}

func decode(part string, into any) error {
	text, err := raw.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func number(text string) *big.Int {
	bytes, err := raw.DecodeString(text)
	if err != nil {
		fail(err)
	}
	return new(big.Int).SetBytes(bytes)
}

func signedBy(key jwk, message, signature []byte) bool {
	digest := sha256.Sum256(message)
	switch key.Alg {
	case "ES256":
		if len(signature) != 64 {
			return false
		}
		public := ecdsa.PublicKey{Curve: elliptic.P256(), X: number(key.X), Y: number(key.Y)}
		r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
		return ecdsa.Verify(&public, digest[:], r, s)
	case "RS256":
		public := rsa.PublicKey{N: number(key.N), E: int(number(key.E).Int64())}
		return rsa.VerifyPKCS1v15(&public, crypto.SHA256, digest[:], signature) == nil
	case "EdDSA":
		return ed25519.Verify(ed25519.PublicKey(number(key.X).FillBytes(make([]byte, 32))), message, signature)
	}
	return false
}

// signer is a new key: its public key, and a function that signs with the private key.
type signer struct {
	public jwk
	sign   func(message []byte) ([]byte, error)
}

func mint(claims map[string]any) (map[string]any, error) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	edPublic, edPrivate, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	fixed := func(n *big.Int) string { return raw.EncodeToString(n.FillBytes(make([]byte, 32))) }
	signers := []signer{
		{
			jwk{Kty: "EC", Crv: "P-256", X: fixed(ec.X), Y: fixed(ec.Y), Alg: "ES256"},
			func(message []byte) ([]byte, error) {
				digest := sha256.Sum256(message)
				r, s, err := ecdsa.Sign(rand.Reader, ec, digest[:])
				if err != nil {
					return nil, err
				}
				return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), nil
			},
		},
		{
			jwk{Kty: "RSA", N: raw.EncodeToString(rsaKey.N.Bytes()), E: "AQAB", Alg: "RS256"},
			func(message []byte) ([]byte, error) {
				digest := sha256.Sum256(message)
				return rsa.SignPKCS1v15(rand.Reader, rsaKey, crypto.SHA256, digest[:])
			},
		},
		{
			jwk{Kty: "OKP", Crv: "Ed25519", X: raw.EncodeToString(edPublic), Alg: "EdDSA"},
			func(message []byte) ([]byte, error) { return ed25519.Sign(edPrivate, message), nil },
		},
	}
	set := keySet{}
	tokens := map[string]string{}
	for _, one := range signers {
		one.public.Kid, one.public.Use = "go-"+one.public.Alg, "sig"
		set.Keys = append(set.Keys, one.public)
		header := map[string]string{"alg": one.public.Alg, "kid": one.public.Kid, "typ": "at+jwt"}
		message := encode(header) + "." + encode(claims)
		signature, err := one.sign([]byte(message))
		if err != nil {
			return nil, err
		}
		tokens[one.public.Alg] = message + "." + raw.EncodeToString(signature)
	}
	return map[string]any{"jwks": set, "tokens": tokens}, nil
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		fail(err)
	}
	return raw.EncodeToString(text)
}
