package systest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
)

// connectAs connects a fresh client of that application version and returns status and error members.
func connectAs(t *testing.T, db *pgx.Conn, version string) (int, map[string]any) {
	t.Helper()
	request, err := json.Marshal(map[string]any{
		"client_id": "client " + version, "platform": "test", "app_version": version, "protocol_version": 3,
		"schema": map[string]any{"version": 0, "hash": ""}, "scope_set_version": 0, "known_scopes": map[string]any{},
	})
	if err != nil {
		t.Fatal(err)
	}
	var status int
	var body []byte
	err = db.QueryRow(context.Background(), "SELECT status, body FROM synchro.synchro_connect('u', $1)", string(request)).Scan(&status, &body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Error map[string]any }
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	return status, answer.Error
}

func TestConnectKeepsOldApplicationsOut(t *testing.T) {
	t.Parallel()
	c := pgtest.StartWithExtension(t, pgtest.Config{NoWorker: true, Settings: []string{"synchro.min_client_version = '1.10.0-rc.2'"}})
	db := c.Connect(t, "", "")
	for version, let := range map[string]bool{
		"1.10.0-rc.2": true, "1.10.0-rc.10": true, "1.10.0": true, "1.10.0+build": true, "2.0.0": true,
		"1.10.0-rc.1": false, "1.10.0-beta": false, "1.9.9": false, "1.2.0+99": false, "01.10.0": false, "1.10": false, "": false,
	} {
		t.Run(version, func(t *testing.T) {
			status, refusal := connectAs(t, db, version)
			if let {
				if status != 200 {
					t.Errorf("refused with %d: %v", status, refusal)
				}
				return
			}
			want := fmt.Sprint(map[string]any{"code": "upgrade_required", "message": "upgrade required", "retryable": false,
				"minimum_client_version": "1.10.0-rc.2", "received_client_version": version})
			if status != 426 || fmt.Sprint(refusal) != want {
				t.Errorf("%d %v, want 426 %s", status, refusal, want)
			}
		})
	}
	var clients int
	if err := db.QueryRow(context.Background(), "SELECT count(*) FROM synchro.client").Scan(&clients); err != nil || clients != 5 {
		t.Errorf("%d clients, %v; those let in are 5", clients, err)
	}
}

func TestConnectWithASenselessMinimumLetsNobodyIn(t *testing.T) {
	t.Parallel()
	c := pgtest.StartWithExtension(t, pgtest.Config{NoWorker: true, Settings: []string{"synchro.min_client_version = '1.x'"}})
	if status, _ := connectAs(t, c.Connect(t, "", ""), "99.0.0"); status != 426 {
		t.Errorf("status %d", status)
	}
}
