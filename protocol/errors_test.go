package protocol

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"
)

func TestSQLStateDecidesTheAnswer(t *testing.T) {
	for state, want := range map[string]string{
		"SY001": ErrInvalidRequest, "SY003": ErrAuthRequired, "SY013": ErrCapturePending,
		"40001": ErrTemporaryUnavailable, "40P01": ErrTemporaryUnavailable, "53300": ErrTemporaryUnavailable,
		"55P03": ErrTemporaryUnavailable, "57P01": ErrTemporaryUnavailable, "57P03": ErrTemporaryUnavailable,
		"57014": ErrTemporaryUnavailable, "08006": ErrTemporaryUnavailable, "08000": ErrTemporaryUnavailable,
		"22023": ErrSyncIntegrityFailure, "SY101": ErrSyncIntegrityFailure, "XX000": ErrSyncIntegrityFailure,
		"42883": ErrSyncIntegrityFailure, "": ErrSyncIntegrityFailure,
	} {
		if got := ErrorForSQLState(state); got.Code.Name != want || got.Message == "" {
			t.Errorf("%q: got %s %q, want %s", state, got.Code.Name, got.Message, want)
		}
	}
}

func TestEveryWireCodeHasAMessage(t *testing.T) {
	for _, code := range Codes() {
		if code.OnWire() != (defaultMessages[code.Name] != "") {
			t.Errorf("%s", code.Name)
		}
	}
}

func TestErrorBodyRoundTrip(t *testing.T) {
	e := NewError(ErrClientGenerationExpired, `message with "quotes"`, Extra{"current_client_generation", 7})
	want := `{"error":{"code":"client_generation_expired","message":"message with \"quotes\"","retryable":false,"current_client_generation":7}}`
	if got := string(e.Body()); got != want {
		t.Fatalf("body %s", got)
	}
	back := DecodeError(e.Status(), http.Header{"Retry-After": {"2"}}, e.Body())
	generation, ok := back.Extra("current_client_generation")
	if back.Code != e.Code || back.Message != e.Message || !ok || string(generation.(json.RawMessage)) != "7" || back.RetryAfter != 2*time.Second {
		t.Errorf("came back as %+v", back)
	}
}

func TestForeignErrorAnswer(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   string
	}{
		{502, "<html>bad gateway", ErrTemporaryUnavailable},
		{429, "", ErrRetryLater},
		{401, "{}", ErrAuthRequired},
		{500, `{"error":{"code":"capture_pending"}}`, ErrSyncIntegrityFailure}, // code and status do not belong together
		{500, `{"error":{"code":"key_update_refused"}}`, ErrSyncIntegrityFailure},
		{418, `{"error":"teapot"}`, ErrSyncIntegrityFailure},
		{503, `{"error":{"code":"capture_pending","code":"x"}}`, ErrTemporaryUnavailable},
	} {
		if got := DecodeError(c.status, nil, []byte(c.body)); got.Code.Name != c.want {
			t.Errorf("%d %s: got %s", c.status, c.body, got.Code.Name)
		}
	}
}

func TestRetryAfterVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/retry-after.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Value string
			Valid bool
		}
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Cases) == 0 {
		t.Fatal("no cases", err)
	}
	for _, c := range file.Cases {
		t.Run(c.Value[:min(len(c.Value), 40)], func(t *testing.T) {
			if _, ok := ParseRetryAfter(c.Value, time.Now()); ok != c.Valid {
				t.Errorf("valid %t, got %t", c.Valid, ok)
			}
		})
	}
}

func TestRetryAfterValue(t *testing.T) {
	now := time.Date(1994, 11, 6, 8, 49, 30, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"0": 0, "0.5": 500 * time.Millisecond, "\t7 ": 7 * time.Second, "123456789012345": 1<<63 - 1,
		"Sun, 06 Nov 1994 08:49:37 GMT": 7 * time.Second, "Sun, 06 Nov 1994 08:49:00 GMT": 0,
	} {
		if got, ok := ParseRetryAfter(value, now); !ok || got != want {
			t.Errorf("%q: got %v, %t", value, got, ok)
		}
	}
	if _, ok := ParseRetryAfter("Mon, 06 Nov 1994 08:49:37 GMT", now); ok {
		t.Error("a wrong weekday is accepted")
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("0.5")
	f.Add("Sun, 06 Nov 1994 08:49:37 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		if wait, ok := ParseRetryAfter(value, time.Now()); wait < 0 || !ok && wait != 0 {
			t.Fatalf("%v, %t", wait, ok)
		}
	})
}
