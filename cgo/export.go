// Command cgo builds the library synchro_core.so (-buildmode=c-shared): the exports of core_abi.h over worker/host.
package main

// #include "core_abi.h"
import "C"

import "synchro/worker/host"

//export SynchroCoreABI
func SynchroCoreABI() C.int { return C.SYNCHRO_CORE_ABI }

//export SynchroCoreStart
func SynchroCoreStart(controlFD, statusFD C.int) C.int {
	if !host.Start(int(controlFD), int(statusFD)) {
		return C.SYNCHRO_CORE_RUNNING
	}
	return C.SYNCHRO_CORE_OK
}

//export SynchroCoreWait
func SynchroCoreWait() { host.Wait() }

func main() {}
