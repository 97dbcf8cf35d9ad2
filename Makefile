# Attention by Hand. `make` alone lists the targets.
#
# Switches: PYTHON=/path/to/python3.12   TORCH=auto|cpu|default   MODELS=none
#           PORT=8888   BROWSER_OPEN=no

PYTHON ?=
TORCH ?= auto
MODELS ?=
PORT ?=
BROWSER_OPEN ?=
export PYTHON TORCH MODELS PORT BROWSER_OPEN

RUN = .venv/bin/python
# "2>/dev/null" makes old versions of make ask the shell, which knows `command`.
FOUND = $(or $(PYTHON),$(firstword $(foreach name,python3 python3.13 python3.12 python3.11 \
	python3.10,$(shell command -v $(name) 2>/dev/null))))

define prepare
@command -v "$(FOUND)" >/dev/null 2>&1 || { echo "No Python at '$(FOUND)'. Install Python 3.10\
 to 3.13 (python.org/downloads), or name yours: make $@ PYTHON=/path/to/python3.12" >&2; exit 1; }
@"$(FOUND)" tools/setup_environment.py
endef

.PHONY: help lab test lint doctor models colab example picture translator ablations lists bench constraints clean

help:  ## List the targets.
	@sed -n 's/^\([a-z]*\): .*## \(.*\)/make \1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

lab:  ## Set up the course and open JupyterLab on lesson 00.
	$(prepare) lab
	@$(RUN) tools/open_lab.py

test:  ## Set up the course with the development tools and run every test.
	$(prepare) dev
	@$(RUN) tools/run_tests.py

lint:  ## Check the style of the code and the notebooks.
	$(prepare) dev
	@$(RUN) tools/run_tests.py --only-lint

doctor:  ## Print what a bug report needs, and a remedy for each fault.
	$(prepare) lab
	@cd notebooks && ../$(RUN) -c "import course_lib; course_lib.doctor()"

models:  ## Fetch the real weights that the lessons use.
	$(prepare) lab
	@$(RUN) -m course_lib.pretrained.fetch minilm

colab:  ## Write the lessons for Colab into dist/colab.
	$(prepare) dev
	@$(RUN) tools/colab.py

example:  ## Store one sentence as MiniLM reads it, for where there are no weights.
	$(prepare) lab
	@$(RUN) -m course_lib.pretrained.make_example

picture:  ## Draw the picture of the README.
	$(prepare) lab
	@$(RUN) tools/draw_picture.py docs/attention.png

translator:  ## Train the German translator that ships with the course.
	$(prepare) lab
	@$(RUN) -m course_lib.training.make_translator

ablations:  ## Store lesson 07's ablations anew (10 minutes).
	$(prepare) lab
	@$(RUN) -m course_lib.training.stored ablations

lists:  ## Store lesson 07's runs on lists anew (20 minutes).
	$(prepare) lab
	@$(RUN) -m course_lib.training.stored lists

bench:  ## Measure how fast the course is.
	$(prepare) lab
	@$(RUN) benchmarks/time_to_result.py

constraints:  ## Pin every package anew, for Python 3.10 to 3.13.
	$(prepare) dev
	@$(RUN) -m uv pip compile pyproject.toml --universal --python-version 3.10 --all-extras \
		--group installer --no-emit-package attention-by-hand --no-annotate --upgrade --quiet \
		--custom-compile-command "make constraints" --output-file constraints.txt
	@echo "constraints.txt is new; make test installs it and says whether all still works."

clean:  ## Remove what the targets made, but nothing that a learner wrote.
	rm -rf .venv .venv.lock build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
