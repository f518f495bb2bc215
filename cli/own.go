package cli

func ownDaemon(home, url string) bool { return false }
