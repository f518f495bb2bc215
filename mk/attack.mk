# The escape board: programs that attack the box they run in.
.PHONY: attack

attack: root deps programs $(BUILD)/debian.tar ## attack boxes in every way that is known here, and print what got through by class (needs root)
	$(GO) run ./test/attack/board -build $(BUILD) -write docs/SECURITY.md

# The tests run the board, too.
gotest: $(BUILD)/debian.tar
