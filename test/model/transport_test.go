package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// fate is what happens to a request on its way.
type fate int

const (
	delivered   fate = iota
	requestLost      // never arrives
	answerLost       // is executed, and nobody hears of it
	repeated         // arrives twice, one after the other
	doubled          // arrives twice at the same time
	cut              // the connection breaks while the server works, or before
	fates
)

// errLost is what a client sees of a lost request or answer.
var errLost = errors.New("lost on the way")

// reply is an answer as it came over the wire.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// faulty is a transport with faults. Every answer that the server gave is seen, whether or not it arrives.
type faulty struct {
	next http.RoundTripper
	fate fate
	cut  time.Duration
	seen []reply
}

func (f *faulty) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	switch f.fate {
	case requestLost:
		return nil, errLost
	case repeated:
		if _, err := f.once(q, body); err != nil {
			return nil, err
		}
	case doubled:
		type outcome struct {
			r   reply
			err error
		}
		other := make(chan outcome, 1)
		go func() {
			r, err := f.pass(q, body)
			other <- outcome{r, err}
		}()
		r, err := f.pass(q, body)
		second := <-other
		if err := errors.Join(err, second.err); err != nil {
			return nil, err
		}
		f.seen = append(f.seen, r, second.r)
		return r.response(q), nil
	case cut:
		ctx, cancel := context.WithTimeout(q.Context(), f.cut)
		defer cancel()
		if _, err := f.once(q.WithContext(ctx), body); err != nil {
			return nil, errLost
		}
		return nil, errLost
	}
	r, err := f.once(q, body)
	if err != nil {
		return nil, err
	}
	if f.fate == answerLost {
		return nil, errLost
	}
	return r.response(q), nil
}

func (f *faulty) once(q *http.Request, body []byte) (reply, error) {
	r, err := f.pass(q, body)
	if err == nil {
		f.seen = append(f.seen, r)
	}
	return r, err
}

func (f *faulty) pass(q *http.Request, body []byte) (reply, error) {
	q = q.Clone(q.Context())
	q.Body = io.NopCloser(bytes.NewReader(body))
	response, err := f.next.RoundTrip(q)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, answer}, err
}

func (r reply) response(q *http.Request) *http.Response {
	return &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewReader(r.body)), Request: q, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(r.body))}
}

// wires are shared connections; answers are read as they come.
var wires = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}

// send posts a body for a user. seen are the answers that the server gave; the last result is the one that arrived.
func (w *world) send(user, route string, body []byte, f fate, after time.Duration, prefer string) (seen []reply, arrived *reply, err error) {
	credential, err := token(user)(context.Background())
	if err != nil {
		return nil, nil, err
	}
	q, err := http.NewRequest(http.MethodPost, w.serve.URL+"/sync/"+route, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	q.Header.Set("Authorization", "Bearer "+credential)
	q.Header.Set("Content-Type", "application/json")
	if prefer != "" {
		q.Header.Set("Prefer", prefer)
	}
	tripper := &faulty{next: wires, fate: f, cut: after}
	response, err := (&http.Client{Timeout: settle, Transport: tripper}).Do(q)
	defer func() {
		status := []string{}
		for _, r := range seen {
			status = append(status, fmt.Sprintf("%d %s", r.status, r.code()))
		}
		w.note("  %s %s fate %d: %v arrived %v\n    %.600s", user, route, f, status, arrived != nil, body)
	}()
	if err != nil {
		return tripper.seen, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return tripper.seen, &reply{response.StatusCode, response.Header, answer}, err
}

// token makes a user's credentials.
func token(user string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		claims := jwt.MapClaims{"sub": user, "exp": time.Now().Add(time.Hour).Unix()}
		return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(jwtSecret))
	}
}
