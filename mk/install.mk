# What `make install` installs beside the programs and the library.
INSTALLS += install-completions install-man install-openapi ldconfig-hint

.PHONY: install-completions install-man install-openapi ldconfig-hint uninstall

# Where each shell looks for completions below PREFIX/share.
COMPLETION_bash := bash-completion/completions/sandbox
COMPLETION_zsh  := zsh/site-functions/_sandbox
COMPLETION_fish := fish/vendor_completions.d/sandbox.fish

install-completions: install-programs
	@for shell in bash zsh fish; do \
	  case $$shell in bash) f='$(COMPLETION_bash)';; zsh) f='$(COMPLETION_zsh)';; fish) f='$(COMPLETION_fish)';; esac; \
	  f='$(DESTDIR)$(PREFIX)/share/'"$$f"; \
	  install -d "$$(dirname "$$f")" && $(BUILD)/sandbox completion $$shell > "$$f" && chmod 644 "$$f" || exit 1; \
	done

install-man: install-programs
	install -d '$(DESTDIR)$(PREFIX)/share/man/man1'
	$(BUILD)/sandbox man '$(DESTDIR)$(PREFIX)/share/man/man1'
	chmod 644 '$(DESTDIR)$(PREFIX)'/share/man/man1/sandbox.1 '$(DESTDIR)$(PREFIX)'/share/man/man1/sandbox-*.1

install-openapi:
	install -d '$(DESTDIR)$(PREFIX)/share/doc/sandbox'
	install -m 644 docs/openapi.yaml '$(DESTDIR)$(PREFIX)/share/doc/sandbox/'

# The linker's cache has to name the library for those who load it by name, as
# Python does. Programs that pkg-config helped to link find it without.
ldconfig-hint: install-lib
	@if [ -z '$(DESTDIR)' ] && ! ldconfig -p 2>/dev/null | grep -qF '=> $(PREFIX)/lib/libsandbox.so.'; then \
	  if ldconfig -vNX 2>/dev/null | grep -q '^$(PREFIX)/lib:'; then echo 'so that programs find libsandbox.so by its name, run as root: ldconfig'; \
	  else echo "so that programs find libsandbox.so by its name, run as root: echo '$(PREFIX)/lib' > /etc/ld.so.conf.d/sandbox.conf && ldconfig"; fi; fi

uninstall: ## remove what `make install` has installed; homes with boxes and images are kept
	cd '$(DESTDIR)$(PREFIX)' && rm -f bin/sandbox lib/libsandbox.so lib/libsandbox.so.* lib/libsandbox.a lib/pkgconfig/sandbox.pc include/sandbox.h include/sandbox.hpp \
	  'share/$(COMPLETION_bash)' 'share/$(COMPLETION_zsh)' 'share/$(COMPLETION_fish)' \
	  share/man/man1/sandbox.1 share/man/man1/sandbox-*.1
	cd '$(DESTDIR)$(PREFIX)' && rm -rf libexec/sandbox lib/sandbox lib/cmake/Sandbox include/sandbox share/doc/sandbox
