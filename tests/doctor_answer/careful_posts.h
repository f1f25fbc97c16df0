// Posts in our own words that are easily misread: what was already tried and what is denied. Fields as in told_posts.h.
#pragma once

#include "told_posts.h"

namespace headroom::doctor {

constexpr ToldPost kTriedAlready[] = {
    {"INFO llm_engine.py:81] Initializing an LLM engine (v0.4.2) with config: model='THUDM/glm-4-9b-chat', "
     "dtype=torch.float16, max_seq_len=8000, tensor_parallel_size=1, enforce_eager=True\ntorch.cuda.OutOfMemoryError: "
     "CUDA out of memory.",
     "gpu-memory-utilization|tensor-parallel|quantized", "--max-model-len 8192|--enforce-eager"},
    {"Training my own UNet: CUDA out of memory. Even with a batch size of 1 the same error comes.",
     "detach|input|other program", "batch_size: half|batch_size=<half>"},
    {"I train a GAN and went from batch size 12 down to 2, it still runs out of GPU memory",
     "detach|input|other program", "batch_size: half|batch_size=<half>"},
    {"训练分割网络爆显存,batch_size从16一路调到2,依然报错", "detach|input|other program", "batch_size: half"},
    {"训练检测模型显存不足,我觉得不是batch_size的问题", "detach|input|other program", "batch_size: half"},
    {"模型训练时显存溢出,跟batch size没有关系", "detach|input|other program", "batch_size: half"},
    {"学習中にGPUのメモリ不足になる。バッチサイズを1に下げても変わらない", "detach|input|other program",
     "batch_size: half"},
    {"DefaultCPUAllocator: not enough memory: you tried to allocate 12582912 bytes\nI made the paging file unlimited, "
     "no "
     "luck",
     "host-memory", "a larger paging file on a drive"},
    {"The data set is tokenized by datasets.map and the process is killed. I lowered num_proc to 8 and then to 4, "
     "still "
     "the same.",
     "stream|host-memory", "fewer processes"},
    {"BERT文本分类微调爆显存\nmax_seq_length已经调到32了\n还是不行", "micro-batch|checkpoint", "shorter texts"},
};

constexpr ToldPost kDenied[] = {
    {"A BERT classifier is trained, the out of memory comes in the update step, not in the evaluation",
     "checkpoint|batch", "no_grad|for evaluation"},
    {"训练时爆显存,不是推理的时候,resnet分类", "batch", "no_grad"},
    {"画像分類のファインチューニングでCUDA out of memory", "batch|input", "max_length"},
    {"学習でVRAM不足、推論ではなく学習のときだけ", "batch", "no_grad"},
};

}  // namespace headroom::doctor
