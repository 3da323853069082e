package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// result is one figure with the limit that it is compared with.
type result struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"` // median
	Unit   string  `json:"unit"`
	Limit  float64 `json:"limit,omitempty"` // the same work without synchro, or of the reference program; 0: none
	Ratio  float64 `json:"ratio,omitempty"`
	Target string  `json:"target,omitempty"`
	Met    *bool   `json:"met,omitempty"`
	Spread float64 `json:"spread"` // (max - min) / median over the runs
}

type bench struct {
	runs    int
	results []result
}

// series are the values of one figure over the runs.
type series []float64

func (s series) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

func (s series) quantile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (s series) spread() float64 {
	if m := s.median(); m != 0 {
		return (slices.Max(s) - slices.Min(s)) / m
	}
	return 0
}

// figure records a value without a limit; atLeast/atMost are its target, 0 for none.
func (b *bench) figure(name, unit string, values series, atLeast, atMost float64) {
	r := result{Name: name, Value: values.median(), Unit: unit, Spread: values.spread()}
	r.judge(r.Value, atLeast, atMost)
	b.results = append(b.results, r)
}

// against records a value beside its limit. The ratio value/limit is the median of the ratios pair by pair, so that it holds
// when the machine's speed drifts between runs; the target is about the ratio.
func (b *bench) against(name, unit string, values, limits series, atLeast, atMost float64) {
	ratios := make(series, len(values))
	for i := range values {
		ratios[i] = values[i] / limits[i]
	}
	r := result{Name: name, Value: values.median(), Unit: unit, Limit: limits.median(), Ratio: ratios.median(), Spread: ratios.spread()}
	r.judge(r.Ratio, atLeast, atMost)
	b.results = append(b.results, r)
}

func (r *result) judge(value, atLeast, atMost float64) {
	var met bool
	switch {
	case atLeast > 0:
		r.Target, met = fmt.Sprintf(">= %g", atLeast), value >= atLeast
	case atMost > 0:
		r.Target, met = fmt.Sprintf("<= %g", atMost), value <= atMost
	default:
		return
	}
	r.Met = &met
}

func (b *bench) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "figure\tmedian\tunit\tlimit\tratio\ttarget\tmet\tspread\t")
	for _, r := range b.results {
		limit, ratio, met := "", "", ""
		if r.Limit != 0 {
			limit, ratio = short(r.Limit), fmt.Sprintf("%.2f", r.Ratio)
		}
		if r.Met != nil {
			met = map[bool]string{true: "yes", false: "NO"}[*r.Met]
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f%%\t\n", r.Name, short(r.Value), r.Unit, limit, ratio, r.Target, met, 100*r.Spread)
	}
	t.Flush()
}

func short(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// write leaves results.json and one chart.
func (b *bench) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(b.results, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "results.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "ratios.svg"), ratioChart(b.results), 0o644)
}
