package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"synchro/protocol"
)

// MaxResponse bounds one answer, decompressed.
const MaxResponse = 256 << 20

// ErrTransport is wrapped by failures on the way: nothing is known about
// whether the server acted.
var ErrTransport = errors.New("no usable answer from the server")

// Client sends requests to one server for one user. It may be shared.
type Client struct {
	// URL is the base of the routes, such as https://sync.example.org.
	URL string
	// Token returns the bearer credential; it is asked before every request.
	Token func(ctx context.Context) (string, error)
	// HTTP sends the requests; nil is a client without a time limit of its own.
	HTTP *http.Client
	// Retry decides how often a request is repeated; the zero value never repeats.
	Retry Retry
}

// Connect negotiates version, generation, schema and scopes.
func (c *Client) Connect(ctx context.Context, q *protocol.ConnectRequest) (*protocol.ConnectResponse, error) {
	body, err := q.Encode()
	if err != nil {
		return nil, err
	}
	return call(ctx, c, "connect", body, 0, protocol.DecodeConnectResponse)
}

// Push sends one batch. Repeating it is safe: the server replays the stored answer.
func (c *Client) Push(ctx context.Context, q *protocol.PushRequest) (*protocol.PushResponse, error) {
	body, err := q.Encode()
	if err != nil {
		return nil, err
	}
	return call(ctx, c, "push", body, 0, protocol.DecodePushResponse)
}

// Pull asks for one page. With wait the server may hold the request that long
// until there is something to tell.
func (c *Client) Pull(ctx context.Context, q *protocol.PullRequest, wait time.Duration) (*protocol.PullResponse, error) {
	body, err := q.Encode()
	if err != nil {
		return nil, err
	}
	return call(ctx, c, "pull", body, wait, protocol.DecodePullResponse)
}

// Rebuild asks for one page of a snapshot. Repeating it is safe: pages are immutable.
func (c *Client) Rebuild(ctx context.Context, q *protocol.RebuildRequest) (*protocol.RebuildResponse, error) {
	body, err := q.Encode()
	if err != nil {
		return nil, err
	}
	return call(ctx, c, "rebuild", body, 0, protocol.DecodeRebuildResponse)
}

// call sends one request, repeats it as far as allowed, and decodes the answer.
func call[T any](ctx context.Context, c *Client, route string, body []byte, wait time.Duration, decode func([]byte) (T, error)) (T, error) {
	var out T
	err := c.Retry.do(ctx, func() error {
		answer, err := c.send(ctx, route, body, wait)
		if err != nil {
			return err
		}
		out, err = decode(answer)
		return err
	})
	return out, err
}

func (c *Client) send(ctx context.Context, route string, body []byte, wait time.Duration) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.URL, "/")+"/sync/"+route, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	token, err := c.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("credential: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept-Encoding", acceptEncoding)
	if seconds := int((wait + time.Second - 1) / time.Second); seconds > 0 {
		request.Header.Set("Prefer", "wait="+strconv.Itoa(seconds))
	}
	h := c.HTTP
	if h == nil {
		h = http.DefaultClient
	}
	response, err := h.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTransport, err)
	}
	defer response.Body.Close()
	answer, err := readAnswer(response)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, protocol.DecodeError(response.StatusCode, response.Header, answer)
	}
	return answer, nil
}

func readAnswer(response *http.Response) ([]byte, error) {
	plain, err := decompress(response.Header.Get("Content-Encoding"), response.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTransport, err)
	}
	defer plain.Close()
	answer, err := io.ReadAll(io.LimitReader(plain, MaxResponse+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTransport, err)
	}
	if len(answer) > MaxResponse {
		return nil, fmt.Errorf("%w: answer is too large", protocol.ErrResponse)
	}
	return answer, nil
}
