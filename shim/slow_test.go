package shim

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// dial sends a pull of a user and reads nothing of the answer.
func dial(t *testing.T, address, user string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	signed := token(t, jwt.MapClaims{"sub": user, "exp": time.Now().Add(time.Hour).Unix()})
	r, _ := http.NewRequest(http.MethodPost, "http://"+address+"/sync/pull", strings.NewReader(pullBody))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+signed)
	if err := r.Write(conn); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Clients that read slowly hold no more memory than is meant for large answers, no longer than the time to write one.
func TestSlowReadersAreBounded(t *testing.T) {
	page := strings.Repeat("x", 8<<20)
	var asked atomic.Int64
	db := &fakeDatabase{answer: func() (answer, error) { asked.Add(1); return answer{status: 200, body: page}, nil }}
	s, _, _ := testServer(t, db)
	s.cfg.WriteTimeout = time.Second
	s.admission, s.octets = newAdmission(100), newAdmission(3*len(page))
	h, err := s.Public()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.Config = s.httpServer(h)
	server.Start()
	defer server.Close()
	address := server.Listener.Addr().String()
	inHand := func() int {
		s.octets.mu.Lock()
		defer s.octets.mu.Unlock()
		return s.octets.total
	}
	var slow []net.Conn
	for _, user := range []string{"ann", "bob", "cyd", "dan", "eve"} {
		slow = append(slow, dial(t, address, user))
	}
	for deadline := time.Now().Add(5 * time.Second); asked.Load() < 5 || inHand() < 3*len(page); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d octets are in hand of %d answers", inHand(), asked.Load())
		}
	}
	if inHand() > 3*len(page) {
		t.Errorf("%d octets are in hand", inHand())
	}
	// Their time comes to an end, and with it their memory.
	for deadline := time.Now().Add(10 * time.Second); inHand() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d octets are still in hand", inHand())
		}
	}
	refused := 0
	for _, conn := range slow {
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		status := make([]byte, len("HTTP/1.1 429"))
		if _, err := io.ReadFull(conn, status); err != nil {
			t.Fatal(err)
		}
		if string(status) == "HTTP/1.1 429" {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("%d were refused, not 2", refused)
	}
}

// A body that does not arrive, or not in time, may be sent again; one that is framed wrongly is wrong for good. The answer does not say
// where it came from.
func TestBodiesThatDoNotArrive(t *testing.T) {
	s, _, _ := testServer(t, answers(200, "{}"))
	s.cfg.ReadTimeout = 200 * time.Millisecond
	h, err := s.Public()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.Config = s.httpServer(h)
	server.Start()
	defer server.Close()
	const sized, chunked = "Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n"
	for name, c := range map[string]struct {
		rest string
		cut  bool
		want int
	}{
		"too slow":         {sized, false, 503},
		"cut":              {sized, true, 503},
		"chunk too slow":   {chunked + "5\r\nabc", false, 503},
		"chunk cut":        {chunked + "5\r\nabc", true, 503},
		"no last chunk":    {chunked + "1\r\n{\r\n", true, 503},
		"no chunk":         {chunked + "zz\r\n", false, 400},
		"chunk too long":   {chunked + "1\r\n{}\r\n0\r\n\r\n", false, 400},
		"chunk of no size": {chunked + "-1\r\n{\r\n", false, 400},
		"more than a size": {chunked + "fffffffffffffffff\r\n{", false, 400},
		"more than a body": {chunked + "fffffff\r\n" + strings.Repeat(" ", 1<<20+1), false, 400},
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /sync/push HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s", validToken(t), c.rest)
		if c.cut {
			conn.(*net.TCPConn).CloseWrite()
		}
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		got, _ := io.ReadAll(conn)
		answer, code := string(got), map[int]string{400: `"code":"invalid_request"`, 503: `"code":"temporary_unavailable"`}[c.want]
		if !strings.HasPrefix(answer, fmt.Sprintf("HTTP/1.1 %d ", c.want)) || !strings.Contains(answer, code) ||
			strings.Contains(answer, "Retry-After: ") != (c.want == 503) || strings.Contains(answer, "127.0.0.1") {
			t.Errorf("%s: %s", name, answer)
		}
	}
}
