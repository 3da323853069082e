package main

import (
	"context"
	"fmt"

	"synchro/internal/devstack"
)

// up starts the development stack; it is the whole of "make up" after the build.
func up(ctx context.Context, _ []string) error {
	s, err := devstack.Open("")
	if err != nil {
		return err
	}
	if err := s.Up(ctx); err != nil {
		return err
	}
	fmt.Printf("synchro is up at %s; settings are in .run/env\n", s.URL())
	return nil
}

// down stops and removes it.
func down(ctx context.Context, _ []string) error {
	s, err := devstack.Open("")
	if err != nil {
		return err
	}
	return s.Down(ctx)
}
