package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// share is the part of one processor that a busy loop gets beside whatever else runs on the machine: 1 when there is room.
func share() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := time.Now()
	before := threadTime()
	for time.Since(start) < 200*time.Millisecond {
	}
	return (threadTime() - before) / time.Since(start).Seconds()
}

func threadTime() float64 { return runTime("/proc/thread-self/schedstat") }

// cpu is the processor time in seconds that a process with all its threads has used so far.
func cpu(pid int) float64 {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	total := 0.0
	for _, t := range threads {
		total += runTime(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, t.Name()))
	}
	return total
}

func runTime(path string) float64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), " ")
	ns, _ := strconv.ParseFloat(first, 64)
	return ns / 1e9
}

// treeTime is the processor time in seconds of a process with its children, ended ones included, to 10 ms.
func treeTime(pid int) float64 {
	total := ticks(pid)
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if child, err := strconv.Atoi(e.Name()); err == nil && statField(child, 3) == strconv.Itoa(pid) {
			total += ticks(child)
		}
	}
	return total
}

// ticks is user and system time in seconds of one process and its ended children.
func ticks(pid int) float64 {
	var sum float64
	for _, i := range []int{13, 14, 15, 16} {
		n, _ := strconv.ParseFloat(statField(pid, i), 64)
		sum += n
	}
	return sum / 100 // USER_HZ
}

// statField is one field of /proc/<pid>/stat, counted from zero.
func statField(pid, i int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if i-2 < 0 || i-2 >= len(fields) {
		return ""
	}
	return fields[i-2]
}

// rss is the resident memory of a process in MiB; peak is its highest so far.
func rss(pid int, peak bool) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	key := map[bool]string{false: "VmRSS:", true: "VmHWM:"}[peak]
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}
