# The escape board: programs that attack the box they run in.
.PHONY: attack attack-rootless

attack: root deps programs $(BUILD)/debian.tar ## attack boxes in every way that is known here, and print what got through by class (needs root)
	$(GO) run ./test/attack/board -build $(BUILD) -write docs/SECURITY.md

attack-rootless: root deps programs sandbox-logs $(BUILD)/debian.tar ## attack the boxes of an ordinary user in the same ways (needs root, which makes that user)
	$(GO) test -count=1 -run TestWithoutRoot -v ./test/attack/board -args -rootless '' -write $(CURDIR)/docs/SECURITY.md

# The tests run the board, too.
gotest: $(BUILD)/debian.tar
