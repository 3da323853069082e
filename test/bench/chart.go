package main

import (
	"bytes"
	"fmt"
	"html"
)

// ratioChart draws every figure that has a limit as a bar of its ratio, green where the target is met.
func ratioChart(results []result) []byte {
	const width, left, line = 760, 330, 26
	var bars []result
	longest := 1.0
	for _, r := range results {
		if r.Limit != 0 {
			bars = append(bars, r)
			longest = max(longest, r.Ratio)
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		width, line*len(bars)+line)
	scale := (width - left - 60) / longest
	for i, r := range bars {
		y := line * (i + 1)
		colour := "#777"
		if r.Met != nil {
			colour = map[bool]string{true: "#2a7", false: "#c33"}[*r.Met]
		}
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.0f" height="14" fill="%s"/>`+
			`<text x="%.0f" y="%d">%.2f %s</text>`+"\n", left-8, y, html.EscapeString(r.Name), left, y-11, r.Ratio*scale, colour,
			left+r.Ratio*scale+5, y, r.Ratio, html.EscapeString(r.Target))
	}
	fmt.Fprintf(&out, `<line x1="%.0f" y1="8" x2="%.0f" y2="%d" stroke="#000" stroke-dasharray="3"/>`+"\n</svg>\n",
		left+scale, left+scale, line*len(bars)+10)
	return out.Bytes()
}
