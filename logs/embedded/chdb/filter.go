package chdb

func loadFilter() error { return nil }
