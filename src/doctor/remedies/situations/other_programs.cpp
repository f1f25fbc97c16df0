// Programs with options of their own that are neither a training of PyTorch nor a server: Caffe, Darknet, MXNet, Theano
// and the first style transfers; folding, masks, sound, search, and engines of TensorRT.
#include <fmt/format.h>

#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool any_device(const CaseView& view) {
  return view.pool() == Pool::device && !view.serving() && unknown_program(view);
}

bool with_caffe(const CaseView& view) { return any_device(view) && view.framework() == "caffe"; }

// One of the programs of which the message, or what stands around it, shows the name.
Evidence by_program(const CaseView& view, std::string_view name) {
  if (view.framework() != name) return {};
  const std::string_view word = view.other_program().word;
  return {0.89, word.empty() ? "the message is its own" : fmt::format("`{}` in the log", word)};
}
Evidence by_caffe(const CaseView& view) { return by_program(view, "caffe"); }
Evidence by_caffe2(const CaseView& view) { return by_program(view, "caffe2"); }
constexpr std::string_view kDetects =
    "darknet detect |detector test|detector demo|yolo test|yolo demo|imagenet test|classifier predict|detector map|"
    "darknet.exe detect ";
Evidence by_darknet(const CaseView& view) {
  return view.log_says(kDetects).empty() ? by_program(view, "darknet") : Evidence{};
}
Evidence predicting_by_darknet(const CaseView& view) {
  return view.log_says(kDetects).empty() ? Evidence{} : by_program(view, "darknet");
}
// Photographs with poses by COLMAP are the input of others.
bool by_colmap_itself(const CaseView& view) {
  return any_device(view) && view.log_says("gaussian|splat|nerf|colmap dataset|colmap data set").empty();
}
Evidence by_mxnet(const CaseView& view) { return by_program(view, "mxnet"); }
Evidence by_theano(const CaseView& view) { return by_program(view, "theano"); }
// Any script in Lua: one that is known has options of its own.
constexpr std::string_view kStyles = "neural_style|neural-style|style transfer|style_transfer|deepdream|deep dream";
constexpr std::string_view kStyleIsKept =
    "the whole image goes through the network, and all its layers are kept for the gradient to the pixels";
bool style_in_lua(const CaseView& view) {
  return any_device(view) && !view.log_says("th neural_style|neural_style.lua|.lua|luajit|-backend|torch7").empty();
}
bool style_elsewhere(const CaseView& view) { return any_device(view) && !style_in_lua(view); }
Evidence by_torch7(const CaseView& view) {
  if (!view.log_says(kStyles).empty()) return {};
  Evidence shown = by_program(view, "torch7");
  if (shown.weight > 0) shown.weight = 0.86;
  return shown;
}

// Caffe's forward pass alone: no solver, no backward pass.
constexpr std::string_view kForward =
    "net.forward|deploy.prototxt|classify.py|classification.bin|run inference|inference|predict(";
constexpr std::string_view kSolves = "solver|train|iteration|snapshot";
bool predicts_with_caffe(const CaseView& view) {
  return view.framework() == "caffe" && !view.log_says(kForward).empty() && !view.says(kSolves);
}
// One image at a time: batch and size stand in the configuration of a layer in Python, not in a data layer.
constexpr std::string_view kFasterRcnn = "faster-rcnn|faster_rcnn|fast-rcnn|fast_rcnn|py-r-fcn|rfcn|tools/train_net.py";
Evidence training_by_caffe(const CaseView& view) {
  return predicts_with_caffe(view) || !view.log_says(kFasterRcnn).empty() ? Evidence{} : by_caffe(view);
}
Evidence predicting_by_caffe(const CaseView& view) { return predicts_with_caffe(view) ? by_caffe(view) : Evidence{}; }
// Speech that is synthesised: the decoder makes a frame of the spectrogram, or some, at each step.
bool trains_speech(const CaseView& view) {
  return any_device(view) && !view.foreign_framework() && view.story().task != ToldTask::prediction;
}

constexpr std::string_view kWhoHoldsIt = "nvidia-smi: another program, or an earlier run, may hold the device";

// A program that reads a sequence and is not trained.
Evidence folds_a_sequence(const CaseView& view) {
  constexpr std::string_view kTrains = "train|finetun|fine-tun|epoch|bert|loss$";
  const bool file = view.incident().log_text.find(".fasta") != std::string::npos;
  if (!file || view.story().task == ToldTask::training || !view.log_says(kTrains).empty()) return {};
  return {0.97, "`.fasta` in the log"};
}

constexpr Situation kSituations[] = {
    {"images_of_faster_rcnn",
     "one image at a time, at the scale that is configured: its features and regions decide, not a batch",
     with_caffe,
     {{either, 0.92, kFasterRcnn}},
     {{"input-size",
       "a smaller scale: half of TRAIN.SCALES and TRAIN.MAX_SIZE (of TEST too), in config.py or the experiment's .yml"},
      {"micro-batch", "TRAIN.IMS_PER_BATCH: 1, half of TRAIN.BATCH_SIZE and TRAIN.RPN_BATCHSIZE (regions)"},
      {"smaller-model", "a smaller network: ZF or VGG_CNN_M_1024 instead of VGG16"}}},
    {"boxes_of_ssd",
     "the script of SSD writes the batch into its nets: batch_size images at a time, accum_batch_size per update",
     with_caffe,
     {{either, 0.91, "ssd_pascal|ssd_coco|caffe-ssd|caffe/ssd|multibox|vgg_ssd|mobilenet-ssd|ssd300|ssd512"}},
     {{"micro-batch", "batch_size = <half> in the script (examples/ssd/ssd_pascal.py): accum_batch_size may stay"},
      {"input-size", "smaller images: the version for 300 pixels (resize_width, resize_height)"},
      {"end-other-processes", kWhoHoldsIt}}},
    {"training_by_caffe",
     "Caffe keeps all blobs of a batch, of the training and of the test net",
     any_device,
     {},
     {{"micro-batch",
       "batch_size: <half> in the data layers of the .prototxt (TRAIN and TEST), iter_size: <double> in the solver"},
      {"input-size", "smaller images: crop_size, or new_height and new_width of transform_param"},
      {"end-other-processes", kWhoHoldsIt}},
     training_by_caffe},
    {"prediction_by_caffe",
     "a forward pass alone: Caffe makes the blobs of all layers for the input shape of the net",
     any_device,
     {},
     {{"end-other-processes", kWhoHoldsIt},
      {"micro-batch",
       "one image at a time: input_shape {dim: 1 ...} in the deploy file, net.blobs[\"data\"].reshape(1, ...)"},
      {"input-size", "smaller images: a smaller height and width of input_shape (net.blobs[\"data\"].reshape)"},
      {"on-cpu", "caffe.set_mode_cpu(): slow"}},
     predicting_by_caffe},
    {"speech_by_tacotron",
     "the decoder keeps what every step took: steps grow with the longest utterance of a batch",
     trains_speech,
     {{either, 0.86, "tacotron|max_mel_frames|outputs_per_step|n_frames_per_step|n-frames-per-step"}},
     {{"micro-batch"},
      {"sequence-length",
       "shorter utterances: those beyond a length left out (a smaller max_mel_frames, segment_length)"},
      {"input-size",
       "a larger reduction factor: outputs_per_step (n_frames_per_step) of 2 to 5, so that the decoder takes fewer "
       "steps"},
      {"mixed-precision", "16 bits: fp16_run=True, or torch.autocast", {}, System::unknown, "fp16|amp$|autocast"}}},
    {"training_by_caffe2",
     "Caffe2 keeps all blobs of the images that it takes at a time (Detectron: per GPU)",
     any_device,
     {},
     {{"micro-batch", "TRAIN.IMS_PER_BATCH 1 (Detectron; SOLVER.BASE_LR by the same factor), else half of the batch"},
      {"input-size", "a smaller scale: half of TRAIN.SCALES and TRAIN.MAX_SIZE (of TEST too)"},
      {"end-other-processes", kWhoHoldsIt}},
     by_caffe2},
    {"training_by_theano",
     "the batch decides; the pool takes a share of the device at its start",
     any_device,
     {},
     {{"micro-batch", "a smaller batch_size: half of it"},
      {"own-allocator",
       "THEANO_FLAGS=gpuarray.preallocate=0 (the old back end: lib.cnmem=0), allow_gc=True, scan.allow_gc=True"},
      {"end-other-processes", kWhoHoldsIt}},
     by_theano},
    {"script_of_torch7",
     "a script of Torch 7 (Lua) has options of its own: batch and input size decide",
     any_device,
     {},
     {{"micro-batch", "-batch_size <half> (-batchSize in other scripts)"},
      {"input-size", "smaller images: half a side"},
      {"end-other-processes", kWhoHoldsIt}},
     by_torch7},
    {"poses_by_openpose",
     "the network works at the resolution that it is given, not at the image's",
     any_device,
     {{log, 0.91, "openpose"}},
     {{"input-size", "--net_resolution 320x176 (multiples of 16; -1x368 unless stated), without --face and --hand"},
      {"smaller-model", "--model_pose COCO or MPI_4_layers instead of BODY_25"},
      {"end-other-processes", "nvidia-smi: another program may hold the device"}}},
    {"boosted_trees",
     "the whole table lies on the device, in bins and in 32 bits",
     any_device,
     {{log, 0.88, "xgboost|lightgbm|catboost|gpu_hist"}},
     {{"input-size",
       "less of the table at a time: QuantileDMatrix, external memory, float32, subsample=0.5; fewer bins: max_bin=64"},
      {"on-cpu", "tree_method=\"hist\", device=\"cpu\""},
      {"smaller-model", "shallower trees: max_depth=6"}}},
    {"stereo_of_colmap",
     "depth maps are computed at the size of the photographs, with the neighbours of each in a cache",
     by_colmap_itself,
     {{log, 0.88, "colmap|openmvs"}},
     {{"input-size",
       "smaller images: --PatchMatchStereo.max_image_size 1600 (SIFT: --SiftExtraction.max_image_size 1600)"},
      {"low-vram", "--PatchMatchStereo.cache_size 8, fewer neighbours"},
      {"find-sample", "parts of the scene one after another"}}},
    {"training_by_darknet",
     "Darknet takes batch / subdivisions images at a time, of width x height",
     any_device,
     {},
     {{"micro-batch", "subdivisions=<double> in the .cfg, up to batch: batch / subdivisions images at a time"},
      {"input-size", "a smaller width and height in the .cfg (multiples of 32), random=0"},
      {"smaller-model", "the tiny version of the model (yolov4-tiny.cfg)"}},
     by_darknet},
    {"prediction_by_darknet",
     "Darknet makes all layers of the network for the .cfg's batch, width and height before it sees an image, and "
     "needs what another program, or an earlier run, may hold",
     any_device,
     {},
     {{"end-other-processes", "nvidia-smi: end what else holds the device (a restart frees what no list shows)"},
      {"micro-batch", "batch=1 and subdivisions=1 in the .cfg: the lines for testing"},
      {"input-size", "a smaller width and height in the .cfg (multiples of 32)"},
      {"smaller-model", "the tiny version of the model (yolov4-tiny.cfg)"}},
     predicting_by_darknet},
    {"training_by_mxnet",
     "the batch decides; the pool keeps what was freed",
     any_device,
     {},
     {{"micro-batch", "a smaller --batch-size (batch_size of the iterator): half"},
      {"input-size", "smaller images: --data-shape, --image-shape: half a side"},
      {"own-allocator", "export MXNET_GPU_MEM_POOL_TYPE=Round (memory in pieces)"}},
     by_mxnet},
    {"style_transfer_in_lua",
     kStyleIsKept,
     style_in_lua,
     {{log, 0.9, kStyles}},
     {{"input-size", "-image_size 256 (or half of what it is)"},
      {"smaller-model",
       "the NIN model instead of VGG-19: -model_file models/nin_imagenet_conv.caffemodel, with its -proto_file and "
       "layers"},
      {"optimizer-8bit", "-optimizer adam instead of lbfgs; on NVIDIA -backend cudnn", {}, System::unknown, "clnn"},
      {"optimizer-8bit", "-optimizer adam instead of lbfgs"},
      {"on-cpu", "-gpu -1 (cpu): slow"}}},
    {"style_transfer",
     kStyleIsKept,
     style_elsewhere,
     {{log, 0.89, kStyles}},
     {{"input-size", "smaller images of content and style: half of imsize (image_size)"},
      {"smaller-model", "a smaller network: VGG-16, or fewer of its layers"},
      {"on-cpu", "on the CPU: slow"}}},
    {"folding_of_a_long_protein",
     "pair representations grow with the square of the sequence, their attention with the third power",
     any_device,
     {{log, 0.97,
       "alphafold|colabfold|esmfold|openfold|fastfold|unifold|uni-fold|omegafold|helixfold|rosettafold|boltz|protenix|"
       "chai-lab|esm.pretrained"}},
     {{"input-size",
       "a shorter sequence: domains or chains apart, fewer recycles and MSA sequences (--max-msa 256:512)"},
      {"low-vram",
       "in chunks: chunk_size 4, offload_inference (OpenFold and what is built on it: globals.chunk_size); "
       "model.set_chunk_size(64), or 32 (ESMFold)"},
      {"serve-offload",
       "AlphaFold: TF_FORCE_UNIFIED_MEMORY=1 XLA_PYTHON_CLIENT_MEM_FRACTION=4.0: host memory beside the device",
       {},
       System::unknown,
       "torch|openfold|fastfold|esmfold|unifold|boltz|protenix|chai-lab"}},
     folds_a_sequence},
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
