#!/usr/bin/env python3
"""llama.cpp's server for compare_serving.py where no `llama-server` is built: the same server inside PyPI's `xllamacpp`.

Usage: serving_peer_llama.py --model FILE.gguf --threads N --parallel SLOTS --ctx-size TOKENS --cache-ram MIB --host HOST --port PORT
The options are llama-server's. A line names the instruction sets that the wheel was compiled for. Ends at SIGTERM.
"""
import argparse
import os
import signal

import xllamacpp


def parameters():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', required=True)
    for name in ('threads', 'parallel', 'ctx-size', 'cache-ram', 'port'):
        parser.add_argument('--' + name, type=int, required=True)
    parser.add_argument('--host', default='127.0.0.1')
    given = parser.parse_args()
    found = xllamacpp.CommonParams()
    found.model.path = given.model
    found.cpuparams.n_threads = found.cpuparams_batch.n_threads = given.threads
    found.n_parallel, found.n_ctx, found.cache_ram_mib = given.parallel, given.ctx_size, given.cache_ram
    found.hostnames, found.port = [given.host], given.port
    return found


def main():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server = xllamacpp.Server(parameters())
    print(xllamacpp.get_system_info(), server.listening_address, flush=True)
    while True:
        signal.pause()


if __name__ == '__main__':
    main()
