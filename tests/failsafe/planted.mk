# Groups for tests/failsafe/run.sh: one that fails while another one goes on, and is then shown.
planted-green:
	@sleep 1; echo planted green

planted-red:
	@echo planted red; exit 1
