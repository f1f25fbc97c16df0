// Programs with options of their own that are neither a training of PyTorch nor a server: Caffe, Darknet, MXNet and the
// first style transfers; folding, masks, sound, search, and engines of TensorRT.
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool any_device(const CaseView& view) {
  return view.pool() == Pool::device && !view.serving() && unknown_program(view);
}

constexpr Situation kSituations[] = {
    {"training_by_caffe",
     "Caffe keeps all blobs of a batch, of the training and of the test net",
     any_device,
     {{log, 0.89, "caffe|error == cudasuccess (2 vs. 0)|.prototxt|syncedmem"}},
     {{"micro-batch",
       "batch_size: <half> in the data layers of the .prototxt (TRAIN and TEST), iter_size: 2 in the solver"},
      {"input-size", "smaller images: crop_size, or new_height and new_width of transform_param"},
      {"end-other-processes", "nvidia-smi: another program, or an earlier run, may hold the device"}}},
    {"training_by_darknet",
     "Darknet takes batch / subdivisions images at a time, of width x height",
     any_device,
     {{log, 0.89, "darknet"}},
     {{"micro-batch",
       "subdivisions=<double> (16, 32, 64) in the .cfg: batch / subdivisions images at a time; random=0"},
      {"input-size", "a smaller width and height in the .cfg (416, 320: multiples of 32)"},
      {"smaller-model", "the tiny version of the model (yolov4-tiny.cfg)"}}},
    {"training_by_mxnet",
     "the batch decides; the pool keeps what was freed",
     any_device,
     {{log, 0.88, "mxnet|gluoncv|gluonnlp"}},
     {{"micro-batch", "a smaller --batch-size (batch_size of the iterator): half"},
      {"input-size", "smaller images: --data-shape, --image-shape: half a side"},
      {"own-allocator", "export MXNET_GPU_MEM_POOL_TYPE=Round (memory in pieces)"}}},
    {"style_transfer",
     "the whole image goes through the network, and all its layers are kept for the gradient to the pixels",
     any_device,
     {{log, 0.89, "neural_style|neural-style|style transfer|style_transfer|deepdream|deep dream"}},
     {{"input-size", "-image_size 256 (or half of what it is)"},
      {"optimizer-8bit", "-optimizer adam instead of lbfgs, -backend cudnn"},
      {"on-cpu", "-gpu -1 (cpu): slow"}}},
    {"folding_of_a_long_protein",
     "pair representations grow with the square of the sequence, their attention with the third power",
     any_device,
     {{log, 0.9, "alphafold|colabfold|esmfold|openfold|rosettafold|boltz|protenix|chai-lab|esm.pretrained"}},
     {{"input-size",
       "a shorter sequence: domains or chains apart, fewer recycles and MSA sequences (--max-msa 256:512)"},
      {"low-vram", "in chunks: model.set_chunk_size(64), or 32 (ESMFold); OpenFold: offload_inference, chunk_size 4"},
      {"serve-offload",
       "AlphaFold: TF_FORCE_UNIFIED_MEMORY=1 XLA_PYTHON_CLIENT_MEM_FRACTION=4.0: host memory beside the device"}}},
    {"masks_of_an_image",
     "a mask is computed for a grid of points, many at a time, at the image's own resolution",
     any_device,
     {{log, 0.87, "segment anything|segment_anything|segment-anything|automaticmaskgenerator|sam_vit|vit_h|sam2"}},
     {{"micro-batch", "fewer points at a time: points_per_batch=16 (SamAutomaticMaskGenerator)"},
      {"input-size", "a smaller image: 1024 pixels on its longer side; masks as RLE (output_mode=\"coco_rle\")"},
      {"smaller-model", "vit_b instead of vit_h (MobileSAM)"}}},
    {"separated_sound",
     "the whole recording goes to the device at once",
     any_device,
     {{log, 0.87, "demucs|spleeter|audiocraft|musicgen|uvr5|ultimate vocal remover|bs-roformer"}},
     {{"input-size", "in shorter segments: --segment 8 (demucs), a smaller segment or chunk size (UVR)"},
      {"micro-batch", "a batch size of 1, fewer --shifts and --overlap"},
      {"on-cpu", "-d cpu (demucs): slow"}}},
    {"engine_of_tensorrt",
     "the builder tries kernels with large workspaces, beside weights in 32 bits and the largest shapes of the profile",
     any_device,
     {{log, 0.87, "trtexec|tensorrt|trt.builder|构建engine|[trt]"}},
     {{"input-size",
       "smaller shapes of the profile: --maxShapes, a smaller batch; less workspace: --memPoolSize=workspace:1024"},
      {"half-inference", "--fp16 (builder flag FP16)"},
      {"end-other-processes", "nvidia-smi: nothing else on the device while the engine is built"}}},
    {"index_on_the_device",
     "the index holds all vectors in 32 bits, and reserves 1.5 GB for its own work",
     any_device,
     {{log, 0.87, "faiss"}},
     {{"half-inference", "in 16 bits: cloner_options.useFloat16 = True"},
      {"quantized-model", "compressed vectors: IVFPQ (IndexIVFPQ) instead of a flat index"},
      {"on-cpu", "the index on the CPU (faiss-cpu), or split: index_cpu_to_all_gpus with shard=True"}}},
    {"text_in_large_images",
     "the whole image goes through the detector, and all found lines through the reader",
     any_device,
     {{log, 0.84, "paddleocr|easyocr|mmocr|surya|识别大图"}},
     {{"input-size", "a smaller image: det_limit_side_len=960 (PaddleOCR), canvas_size=1280 (EasyOCR), or in tiles"},
      {"micro-batch", "fewer lines at a time: rec_batch_num=6, batch_size=1"},
      {"smaller-model", "the mobile version of the models"}}},
};

}  // namespace

std::span<const Situation> other_program_situations() { return kSituations; }

}  // namespace headroom::doctor
