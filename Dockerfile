# docker build -t mmaprobe . && docker run --rm mmaprobe list H100
FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev git make && rm -rf /var/lib/apt/lists/*
WORKDIR /mmaprobe
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation -e .
ENTRYPOINT ["mmaprobe"]
CMD ["--help"]
