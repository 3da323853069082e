package protocol

// ErrorCode is one entry of the error table. Status 0 means that the error
// belongs to registration or to writers and never travels over HTTP.
type ErrorCode struct {
	Name      string
	SQLState  string
	Status    int
	Retryable bool
}

// OnWire tells whether the code may appear in an HTTP answer.
func (c ErrorCode) OnWire() bool { return c.Status != 0 }

var (
	codesByName  = map[string]ErrorCode{}
	codesByState = map[string]ErrorCode{}
)

func init() {
	for _, code := range errorTable {
		codesByName[code.Name] = code
		if _, taken := codesByState[code.SQLState]; !taken {
			codesByState[code.SQLState] = code
		}
	}
}

// Codes returns the whole table in its order.
func Codes() []ErrorCode { return append([]ErrorCode(nil), errorTable...) }

// CodeByName finds an entry by its name.
func CodeByName(name string) (ErrorCode, bool) {
	code, ok := codesByName[name]
	return code, ok
}

// CodeBySQLState finds an entry by its SQLSTATE. Where standard SQLSTATEs are
// shared by several entries, none of which is on the wire, it is the first.
func CodeBySQLState(state string) (ErrorCode, bool) {
	code, ok := codesByState[state]
	return code, ok
}
