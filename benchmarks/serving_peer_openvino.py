"""OpenVINO GenAI's continuous batching on the requests of compare_serving.py; prints one JSON line of figures.

Usage: serving_peer_openvino.py MODEL REQUESTS.jsonl --converted DIR [--convert] [--streams 16] [--threads 2] [--cache-gb 1]
--convert writes OpenVINO's form of MODEL (optimum-intel, weights as they are) to DIR and ends. Otherwise the pipeline of DIR answers the requests,
--streams under way at once, the next as soon as one ends; two of them first to warm up. Needs openvino-genai and optimum-intel.
"""
import argparse
import json
import os
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('model')
    parser.add_argument('requests')
    parser.add_argument('--converted', required=True)
    parser.add_argument('--convert', action='store_true')
    parser.add_argument('--streams', type=int, default=16)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--cache-gb', type=int, default=1)
    return parser.parse_args()


def convert(options):
    from optimum.intel import OVModelForCausalLM  # pylint: disable=import-outside-toplevel
    from transformers import AutoTokenizer  # pylint: disable=import-outside-toplevel
    from openvino import save_model  # pylint: disable=import-outside-toplevel
    from openvino_tokenizers import convert_tokenizer  # pylint: disable=import-outside-toplevel
    OVModelForCausalLM.from_pretrained(options.model, export=True, load_in_8bit=False, compile=False, torch_dtype='auto').save_pretrained(options.converted)
    tokenizer, detokenizer = convert_tokenizer(AutoTokenizer.from_pretrained(options.model), with_detokenizer=True)
    save_model(tokenizer, os.path.join(options.converted, 'openvino_tokenizer.xml'))
    save_model(detokenizer, os.path.join(options.converted, 'openvino_detokenizer.xml'))


def answer(pipeline, requests, streams, first):
    """Runs the requests to their ends; the number of tokens that they gave."""
    import numpy  # pylint: disable=import-outside-toplevel
    import openvino  # pylint: disable=import-outside-toplevel
    import openvino_genai  # pylint: disable=import-outside-toplevel
    waiting, running, tokens, completed = list(enumerate(requests, first)), [], 0, 0
    while waiting or running:
        while waiting and len(running) < streams:
            number, request = waiting.pop(0)
            config = openvino_genai.GenerationConfig()
            config.max_new_tokens = request['max_tokens']
            config.ignore_eos = True
            ids = openvino.Tensor(numpy.array([request['prompt']], dtype=numpy.int64))
            running.append((request, pipeline.add_request(number, ids, config)))
        pipeline.step()
        for entry in list(running):
            request, handle = entry
            if handle.get_status() != openvino_genai.GenerationStatus.RUNNING:
                got = len(handle.read_all()[0].generated_ids)
                tokens += got
                completed += got == request['max_tokens']
                running.remove(entry)
    return tokens, completed


def serve(options):
    import openvino_genai  # pylint: disable=import-outside-toplevel
    with open(options.requests, encoding='utf-8') as text:
        requests = [json.loads(line) for line in text]
    begun = time.perf_counter()
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.cache_size = options.cache_gb
    scheduler.max_num_seqs = options.streams
    scheduler.enable_prefix_caching = False
    pipeline = openvino_genai.ContinuousBatchingPipeline(options.converted, scheduler, 'CPU', {
        'INFERENCE_NUM_THREADS': options.threads, 'INFERENCE_PRECISION_HINT': 'bf16', 'PERFORMANCE_HINT': 'THROUGHPUT', 'NUM_STREAMS': 1})
    start = time.perf_counter() - begun
    answer(pipeline, requests[:2], options.streams, 0)
    begun = time.perf_counter()
    tokens, completed = answer(pipeline, requests, options.streams, 2)
    print(json.dumps({'seconds': time.perf_counter() - begun, 'completed': completed, 'lost': len(requests) - completed, 'tokens': tokens,
                      'start_seconds': start}), flush=True)


if __name__ == '__main__':
    given = arguments()
    convert(given) if given.convert else serve(given)
