package worker

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Run serves the database until ctx ends (it then returns nil) or something fails; the caller decides about retrying.
func Run(ctx context.Context, cfg Config, report func(State)) error {
	report(Connecting)
	conn, err := pgx.Connect(ctx, cfg.Conninfo)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	report(Streaming)
	if _, err := conn.WaitForNotification(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("waiting: %w", err)
	}
	return nil
}
