package canonical

// Type is a portable type. Its value is the tag octet of the typed binary form.
type Type byte

// The portable types.
const (
	String   Type = 0x01
	Int      Type = 0x02
	Int64    Type = 0x03
	Decimal  Type = 0x04
	Float    Type = 0x05
	Boolean  Type = 0x06
	Datetime Type = 0x07
	Date     Type = 0x08
	Time     Type = 0x09
	JSON     Type = 0x0a
	Bytes    Type = 0x0b
)

var typeNames = [...]string{
	String: "string", Int: "int", Int64: "int64", Decimal: "decimal", Float: "float", Boolean: "boolean",
	Datetime: "datetime", Date: "date", Time: "time", JSON: "json", Bytes: "bytes",
}

// ParseType finds a type by its manifest name.
func ParseType(name string) (Type, bool) {
	for t, n := range typeNames {
		if n == name && n != "" {
			return Type(t), true
		}
	}
	return 0, false
}

// String returns the manifest name.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return ""
}

// IsKey tells whether a primary key may have the type.
func (t Type) IsKey() bool { return t == String || t == Int || t == Int64 }

// FieldSpec is what a value is checked against. Precision 0 means an unconstrained decimal.
type FieldSpec struct {
	Type      Type
	Nullable  bool
	Precision int
	Scale     int
}
