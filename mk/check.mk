# What `make check` holds beside the tests and the linters of Go.
CHECKS         += spelling scripts subjects bars
CHECK_PACKAGES := codespell shellcheck

# Names of the code that codespell takes for misspelt words.
WORDS := atleast,exectable,flate,formend,inflight,lits,nd,nin,openin,outout,passt,te,testof

# Commits up to BASE are older than the rule for subjects. A shallow clone does
# not have it; there the last commit is looked at alone.
BASE ?= 5e598f81820e59857bb1f3b1aa5c72b13bdfca0f

.PHONY: spelling scripts subjects figures bars

spelling: ## look for misspelt words in all files, with codespell
	@$(MAKE) deps PACKAGES='$(CHECK_PACKAGES)'
	git ls-files -z | grep -zvE '(^|/)testdata/|^go\.sum$$|/package-lock\.json$$' | xargs -0 codespell --ignore-words-list '$(WORDS)'

scripts: ## hold all shell scripts to shellcheck
	@$(MAKE) deps PACKAGES='$(CHECK_PACKAGES)'
	git ls-files -z -- .ci '*.sh' | xargs -0 shellcheck --external-sources

subjects: ## hold the subjects of the commits since BASE to "area: what", at most 72 characters
	@range=-1; if git cat-file -e '$(BASE)^{commit}' 2>/dev/null; then range='$(BASE)..HEAD'; fi; \
	wrong=$$(git log --no-merges --format='%h %s' $$range | grep -vE '^[0-9a-f]+ [a-z0-9_./-]+(, [a-z0-9_./-]+)*: .' || true; \
	  git log --no-merges --format='%h %s' $$range | awk '{ subject = substr($$0, index($$0, " ") + 1) } length(subject) > 72'); \
	[ -z "$$wrong" ] || { echo 'subjects want "area: what" and at most 72 characters:'; echo "$$wrong"; exit 1; }

figures: ## print how long functions and files are, and how much of what is exported is documented
	@$(GO) run ./test/figures

bars:
	$(GO) run ./test/figures -check
