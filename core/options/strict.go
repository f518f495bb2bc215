package options

// Strict reads a JSON document of another part as strictly as [Decode] reads
// its own. Errors: Malformed, with fields.
func Strict(doc []byte, v any) error { return decode(doc, v, "", MaxDocument) }
