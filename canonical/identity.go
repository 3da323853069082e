package canonical

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"synchro/internal/ijson"
)

// appendIdentityPrefix appends what all row identities of a table start with.
func appendIdentityPrefix(dst []byte, tableID, keyFieldID string) []byte {
	dst = append(dst, domainRowIdentity...)
	dst = appendBlob(dst, tableID)
	return appendBlob(dst, keyFieldID)
}

// CheckIdentity accepts exactly the octet strings that are a row identity:
// nothing truncated, nothing trailing, a key type and a present key.
func CheckIdentity(identity []byte) error {
	_, err := checkIdentity(identity)
	return err
}

// checkIdentity also tells where the key's value begins.
func checkIdentity(identity []byte) (key int, err error) {
	rest, ok := bytes.CutPrefix(identity, []byte(domainRowIdentity))
	if !ok {
		return 0, fmt.Errorf("%w: wrong domain", ErrIdentity)
	}
	tableID, rest, ok := cutBlob(rest)
	if !ok || len(tableID) == 0 || checkIdentifier(tableID) != nil {
		return 0, fmt.Errorf("%w: bad table id", ErrIdentity)
	}
	fieldID, rest, ok := cutBlob(rest)
	if !ok || len(fieldID) == 0 || checkIdentifier(fieldID) != nil {
		return 0, fmt.Errorf("%w: bad key field id", ErrIdentity)
	}
	return len(identity) - len(rest), checkKeyValue(rest)
}

func checkKeyValue(value []byte) error {
	if !isKeyValue(value) {
		return fmt.Errorf("%w: bad key value", ErrIdentity)
	}
	return nil
}

// isKeyValue tells whether value is one whole present typed value of a key type.
func isKeyValue(value []byte) bool {
	if len(value) < 2 || value[1] != present {
		return false
	}
	payload := value[2:]
	switch Type(value[0]) {
	case Int:
		return len(payload) == 4
	case Int64:
		return len(payload) == 8
	case String:
		text, rest, ok := cutBlob(payload)
		return ok && len(rest) == 0 && checkIdentifier(text) == nil
	}
	return false
}

// cutBlob takes a blob off the front of data.
func cutBlob(data []byte) (blob, rest []byte, ok bool) {
	if len(data) < 8 {
		return nil, nil, false
	}
	size := binary.BigEndian.Uint64(data)
	if size > uint64(len(data)-8) {
		return nil, nil, false
	}
	return data[8 : 8+size], data[8+size:], true
}

// checkIdentifier refuses text without a portable string form.
func checkIdentifier(text []byte) error {
	if bytes.IndexByte(text, 0) >= 0 {
		return errNul
	}
	return ijson.CheckText(text)
}
