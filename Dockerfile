# All that the tests and demos need, as `make` itself installs it:
#   docker build -t baretorch .
#   docker run --rm -it baretorch make demo-mnist
FROM debian:bookworm
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates git make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /baretorch
COPY . .
RUN make setup
CMD ["make", "test"]
