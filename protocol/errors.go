package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"synchro/internal/ijson"
)

// ErrorCode is one entry of the error table. Status 0 means that the error
// belongs to registration or to writers and never travels over HTTP.
type ErrorCode struct {
	Name      string
	SQLState  string
	Status    int
	Retryable bool
}

// OnWire tells whether the code may appear in an HTTP answer.
func (c ErrorCode) OnWire() bool { return c.Status != 0 }

var (
	codesByName  = map[string]ErrorCode{}
	codesByState = map[string]ErrorCode{}
)

func init() {
	for _, code := range errorTable {
		codesByName[code.Name] = code
		if _, taken := codesByState[code.SQLState]; !taken {
			codesByState[code.SQLState] = code
		}
	}
}

// Codes returns the whole table in its order.
func Codes() []ErrorCode { return append([]ErrorCode(nil), errorTable...) }

// CodeByName finds an entry by its name.
func CodeByName(name string) (ErrorCode, bool) {
	code, ok := codesByName[name]
	return code, ok
}

// CodeBySQLState finds an entry by its SQLSTATE. Where standard SQLSTATEs are
// shared by several entries, none of which is on the wire, it is the first.
func CodeBySQLState(state string) (ErrorCode, bool) {
	code, ok := codesByState[state]
	return code, ok
}

// Extra is a further member of an error body, in the order given.
type Extra struct {
	Name  string
	Value any
}

// Error is an error as it travels. Message and extras carry no user data;
// Cause stays on this side.
type Error struct {
	Code       ErrorCode
	Message    string
	Extras     []Extra
	RetryAfter time.Duration
	Cause      error
}

// NewError makes the error of a wire code, which must be in the table.
func NewError(name, message string, extras ...Extra) *Error {
	code, ok := CodeByName(name)
	if !ok || !code.OnWire() {
		panic("protocol: not a wire error: " + name)
	}
	return &Error{Code: code, Message: message, Extras: extras}
}

func (e *Error) Error() string {
	text := e.Code.Name + ": " + e.Message
	if reason, ok := e.Extra("reason"); ok {
		if raw, ok := reason.(json.RawMessage); ok {
			reason = string(raw)
		}
		text += fmt.Sprintf(" (reason %v)", reason)
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Status is the HTTP status.
func (e *Error) Status() int { return e.Code.Status }

// Body is the HTTP body.
func (e *Error) Body() []byte {
	out := ijson.AppendQuoted([]byte(`{"error":{"code":`), []byte(e.Code.Name))
	out = ijson.AppendQuoted(append(out, `,"message":`...), []byte(e.Message))
	out = append(out, `,"retryable":false`...)
	if e.Code.Retryable {
		out = append(out[:len(out)-len("false")], "true"...)
	}
	for _, extra := range e.Extras {
		value, err := json.Marshal(extra.Value)
		if err != nil {
			panic("protocol: error member cannot be encoded: " + extra.Name)
		}
		out = ijson.AppendQuoted(append(out, ','), []byte(extra.Name))
		out = append(append(out, ':'), value...)
	}
	return append(out, '}', '}')
}

// Retryable tells whether the same request may succeed later.
func Retryable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code.Retryable
}

// ErrorForSQLState is the answer to a statement that failed with an SQLSTATE:
// the wire error of the table, a retryable one for conditions that pass, and
// an integrity failure for everything unknown. The text of the database's
// message is not part of it.
func ErrorForSQLState(state string) *Error {
	if code, ok := CodeBySQLState(state); ok && code.OnWire() {
		return &Error{Code: code, Message: defaultMessages[code.Name]}
	}
	if passing(state) {
		return NewError(ErrTemporaryUnavailable, defaultMessages[ErrTemporaryUnavailable])
	}
	return NewError(ErrSyncIntegrityFailure, defaultMessages[ErrSyncIntegrityFailure])
}

// passing tells whether a condition of the database goes away by itself.
func passing(state string) bool {
	switch state {
	case "40001", // serialization_failure
		"40P01",                                     // deadlock_detected
		"55P03",                                     // lock_not_available
		"57014",                                     // query_canceled, statement_timeout
		"57P01", "57P02", "57P03", "25P03", "25P04": // shutdown, crash, starting up, idle or long transaction ended
		return true
	}
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "53") // connection exceptions, insufficient resources
}

var defaultMessages = map[string]string{
	ErrInvalidRequest:          "request is invalid",
	ErrInvalidSchemaReference:  "schema reference is malformed or misused",
	ErrAuthRequired:            "a valid credential is required",
	ErrIdempotencyConflict:     "the id was used before with other content",
	ErrClientRetired:           "client is retired",
	ErrClientGenerationExpired: "client generation is missing or no longer current",
	ErrRebuildRestartRequired:  "rebuild must be started again",
	ErrSchemaMismatch:          "schema is not the current one",
	ErrUpgradeRequired:         "client must be upgraded",
	ErrRetryLater:              "too many requests",
	ErrSyncIntegrityFailure:    "sync state is not usable",
	ErrTemporaryUnavailable:    "sync is temporarily unavailable",
	ErrCapturePending:          "an accepted write is not captured yet",
}

// DecodeError reads an error answer. An answer that is not one of ours becomes
// an error of the nearest code, so that a proxy's page is never an endless loop.
func DecodeError(status int, header http.Header, body []byte) *Error {
	e := readError(status, body)
	if e == nil {
		name := ErrSyncIntegrityFailure
		switch status {
		case http.StatusUnauthorized, http.StatusForbidden:
			name = ErrAuthRequired
		case http.StatusTooManyRequests:
			name = ErrRetryLater
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			name = ErrTemporaryUnavailable
		case http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge:
			name = ErrInvalidRequest
		}
		e = NewError(name, fmt.Sprintf("HTTP status %d, and not an answer of synchro", status), Extra{"http_status", status})
	}
	e.RetryAfter, _ = ParseRetryAfter(header.Get("Retry-After"), time.Now())
	return e
}

func readError(status int, body []byte) *Error {
	var answer struct{ Error map[string]json.RawMessage }
	if ijson.Validate(body, MaxDepth) != nil || json.Unmarshal(body, &answer) != nil {
		return nil
	}
	codeName, err := ijson.Text(answer.Error["code"])
	if err != nil {
		return nil
	}
	code, known := CodeByName(string(codeName))
	if !known || code.Status != status {
		return nil
	}
	e := &Error{Code: code}
	if message, err := ijson.Text(answer.Error["message"]); err == nil {
		e.Message = string(message)
	}
	for name, value := range answer.Error {
		if name != "code" && name != "message" && name != "retryable" {
			e.Extras = append(e.Extras, Extra{name, value})
		}
	}
	return e
}

// Extra returns a further member of the error body as raw JSON or as the value it was made with.
func (e *Error) Extra(name string) (any, bool) {
	for _, extra := range e.Extras {
		if extra.Name == name {
			return extra.Value, true
		}
	}
	return nil, false
}
