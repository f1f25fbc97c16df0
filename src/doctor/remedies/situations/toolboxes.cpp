// Toolboxes with their own training options: detectors, speech recognition, NeMo and Megatron. doctor does not read
// their configurations.
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool trained_by_a_toolbox(const CaseView& view) { return training_on_device(view) && unknown_program(view); }
// GPT-NeoX also has Megatron's frames, but doctor knows its options.
bool trained_by_megatron(const CaseView& view) {
  return training_on_device(view) && !view.has_job() && view.reinforcement_library().empty();
}
// GPT-SoVITS has options of its own.
bool voice_of_so_vits(const CaseView& view) {
  return on_device(view) && !view.serving() && view.log_says("gpt-sovits|gpt_sovits|gpt sovits|gptsovits").empty() &&
         (view.log_says("sovits").empty() || view.log_says("gpt 模型|gpt模型|gpt_weights").empty());
}
// A network over one graph.
bool over_a_graph(const CaseView& view) { return on_device(view) && !view.serving() && unknown_program(view); }
bool any_scene(const CaseView& view) { return on_device(view) && !view.serving(); }
constexpr std::string_view kNerfstudio = "nerfstudio|ns-train|splatfacto|nerfacto";
bool scene_of_another(const CaseView& view) { return any_scene(view) && !view.says(kNerfstudio); }
// A converter of voices only takes features by it.
bool trained_by_fairseq(const CaseView& view) {
  return trained_by_a_toolbox(view) && !speaks_of_prediction(view) &&
         view.log_says("rvc|hubert|contentvec|sovits|so-vits|voice conversion").empty();
}
// Not when speech is only recognised.
bool trained_on_speech(const CaseView& view) {
  return trained_by_a_toolbox(view) && !speaks_of_prediction(view) && view.log_says("transcrib").empty();
}

constexpr Situation kSituations[] = {
    {"boxes_of_one_image",
     "a detector matches every box of an image with every anchor on the GPU: images with hundreds of boxes decide",
     trained_by_a_toolbox,
     {{log, 0.9, "max_iou_assigner|bbox_overlaps|iou2d_calculator|iou_calculator"},
      {either, 0.84, "mmdet|mmrotate|aerialdetection"}},
     {{"find-sample",
       "gpu_assign_thr=300 in the assigner (train_cfg): images with more boxes are matched on the CPU; or leave these "
       "images out"},
      {"micro-batch", "half of samples_per_gpu (train_dataloader.batch_size)"},
      {"input-size", "a smaller img_scale (scale), such as (800, 480)"}}},
    {"training_by_nnunet",
     "nnU-Net plans patch and batch for a GPU of a size: one that is smaller, or a network that was changed, needs "
     "other plans",
     trained_by_a_toolbox,
     {{either, 0.84, "nnunet|nnu-net"}},
     {{"micro-batch", "a smaller batch_size in the plans (nnUNetPlans.json; version 1: the plans' .pkl)"},
      {"input-size", "a smaller patch_size: plan again with -gpu_memory_target <GB> (nnUNetv2_plan_experiment)"},
      {"mixed-precision", "--fp16 in the first releases; later ones train in 16 bits by themselves"}}},
    {"training_by_detectron",
     "a detector keeps features of whole images: memory grows with images at once x their size",
     trained_by_a_toolbox,
     {{either, 0.84,
       "detectron2|ims_per_batch|maskrcnn_benchmark|maskrcnn-benchmark|panopticfpn|centermask|detectron/"}},
     {{"micro-batch", "SOLVER.IMS_PER_BATCH <half> (of all GPUs together), SOLVER.BASE_LR by the same factor"},
      {"input-size", "INPUT.MIN_SIZE_TRAIN (640,) INPUT.MAX_SIZE_TRAIN 1000"},
      {"find-sample", "images with many boxes: MODEL.ROI_HEADS.BATCH_SIZE_PER_IMAGE 128, or leave them out"}}},
    {"training_by_yolo",
     "a detector keeps features of whole images: memory grows with images at once x the square of their side",
     trained_by_a_toolbox,
     {{either, 0.84, "ultralytics|yolov3|yolov5|yolov7|yolov8|yolov9|yolov10|yolo11|yolo train|yolox"}},
     {{"micro-batch", "half of batch= (--batch-size)"},
      {"input-size", "a smaller imgsz (--img): half, a multiple of 32"},
      {"smaller-model", "a smaller model of the same kind: x > l > m > s > n"}}},
    {"training_by_fairseq",
     "fairseq fills a batch with tokens, not rows (--max-tokens), and trains in 32 bits unless it is told otherwise",
     trained_by_fairseq,
     {{either, 0.87, "fairseq"}},
     {{"mixed-precision",
       "--fp16 --memory-efficient-fp16: weights and states in 16 bits too",
       {},
       System::unknown,
       "--memory-efficient-fp16|--memory-efficient-bf16"},
      {"micro-batch",
       "--max-tokens <half> --update-freq <double>, not below the longest row; --max-source-positions and "
       "--truncate-source cut rows, --skip-invalid-size-inputs-valid-test leaves longer ones out"},
      {"checkpointing", "--checkpoint-activations", {}, System::unknown, "--checkpoint-activations"},
      {"adafactor", "--optimizer adafactor", {}, System::unknown, "--optimizer adafactor"},
      {"shard", "--ddp-backend fully_sharded (several devices)"}}},
    {"recordings_of_unlike_length",
     "the longest recording of a batch sets the length of all: a few long ones decide, whatever the average",
     trained_on_speech,
     {{either, 0.84,
       "gigaspeech|librispeech|wenetspeech|aishell|espnet|nemo_asr|quartznet|jasper|citrinet|conformer_ctc|funasr|"
       "speechbrain|wenet|wav2vec|audiototext|fbank"}},
     {{"sequence-length",
       "leave long recordings out: max_duration: 16.7 (NeMo, beside the manifest), or slice them into shorter clips"},
      {"micro-batch", "half of batch_size (ESPnet: batch_bins)"},
      {"length-buckets", "batches by length: batch_type: numel or length (ESPnet), bucketing (NeMo)"}}},
    {"clips_of_a_voice",
     "features are taken from whole recordings: one of several minutes takes more than all others",
     voice_of_so_vits,
     {{either, 0.85, "so-vits|sovits|so_vits|diff-svc|rvc|hubert|contentvec|bert-vits|vits/|f0_predictor"}},
     {{"sequence-length", "slice the recordings into clips of 2 to 15 s, and look for odd samples that are longer"},
      {"fewer-workers", "fewer processes at once: --num_processes 1"},
      {"micro-batch", "a smaller batch_size in config.json"}}},
    {"whole_graph",
     "the whole graph goes through the network: features of all nodes, and messages along all edges of every layer, "
     "are kept; a loader over one graph does not divide it",
     over_a_graph,
     {{either, 0.88,
       "torch_geometric|torch-geometric|pytorch_geometric|pytorch geometric|import dgl|dgl.|edge_index|gcnconv|"
       "gatconv|sageconv|graphsage|gnn$|gnns$|pyg$|ogbn|dgl$|graph convolutional network|graph attention network|node "
       "classification|adjacency matrix|graph neural|邻接矩阵|图神经网络|"
       "グラフニューラル|隣接行列"}},
     {{"micro-batch",
       "a part of the graph at a time: NeighborLoader(data, num_neighbors=[15, 10], batch_size=1024) (PyG), "
       "NeighborSampler (DGL), ClusterLoader"},
      {"input-size",
       "a smaller hidden size, fewer layers and heads; a sparse adjacency (SparseTensor), no N x N matrix"},
      {"on-cpu", "the whole graph on the CPU where it is evaluated: device=\"cpu\""}}},
    {"crops_of_cyclegan",
     "two generators and two discriminators keep all layers of a whole crop: its side decides (the batch is 1 unless "
     "stated)",
     trained_by_a_toolbox,
     {{either, 0.84, "cyclegan|pix2pix|loadsize|finesize"}},
     {{"input-size",
       "a smaller crop: three quarters of --crop_size and --load_size (Lua: fineSize, loadSize), in steps of 4 pixels"},
      {"smaller-model", "narrower networks: --ngf 32 --ndf 32; --netG resnet_6blocks (which_model_netG) or unet_128"},
      {"micro-batch"}}},
    {"scenes_of_nerfstudio",
     "a scene keeps its photographs on the device, and splatfacto Gaussians whose number grows until it stops to split "
     "them",
     any_scene,
     {{either, 0.97, kNerfstudio}},
     {{"find-sample",
       "fewer Gaussians: --pipeline.model.densify-grad-thresh 0.002, --pipeline.model.stop-split-at 8000 (defaults "
       "0.0008, 15000)"},
      {"input-size", "smaller photographs: nerfstudio-data --downscale-factor 4, or fewer of them"},
      {"low-vram",
       "--pipeline.datamanager.cache-images cpu (splatfacto; nerfacto: --pipeline.datamanager.images-on-gpu False)"}}},
    {"scenes_of_gaussians",
     "a scene keeps all its photographs on the device beside its Gaussians, whose number grows until densification "
     "ends",
     scene_of_another,
     {{log, 0.96, "rasterize_gaussians|gaussian_renderer|diff_gaussian|surfel_rasterization"},
      {either, 0.86, "gaussian-splatting|gaussian_splatting|gaussian splatting|gaussiansplatting|gsplat"},
      {either, 0.8, "instant-ngp"}},
     {{"input-size", "smaller photographs: -r 2, -r 4 (--resolution), or fewer of them"},
      {"low-vram", "--data_device cpu: the photographs wait on the host"},
      {"find-sample",
       "fewer Gaussians: --densify_grad_threshold 0.0005, an earlier --densify_until_iter; look at their number"}}},
    {"scripts_of_lit_llama",
     "the scripts of Lit-LLaMA and of the first LitGPT hold their settings at their heads; batch_size is only the sum "
     "of several micro_batch_size",
     trained_by_a_toolbox,
     {{either, 0.84, "lit-llama|lit_llama|lit-parrot|lit_parrot|lit-gpt|lit_gpt"}},
     {{"micro-batch", "micro_batch_size = <half> at the head of the script (batch_size may stay)"},
      {"sequence-length", "shorter rows: max_seq_length of the script that prepares the data"},
      {"qlora", "--quantize bnb.nf4 (finetune/lora.py of lit-gpt), or finetune/adapter.py"}}},
    {"training_by_mistral_finetune",
     "mistral-finetune packs rows of seq_len tokens (32768 in its examples), and a row is what runs at once",
     trained_by_a_toolbox,
     {{either, 0.9, "mistral-finetune|mistral_finetune|mistral finetune"}},
     {{"sequence-length", "seq_len: 8192, or less, in the configuration (32768 in the examples)"},
      {"micro-batch", "batch_size: 1, num_microbatches: 8"},
      {"checkpointing", "checkpoint: True", {}, System::unknown, "checkpoint: true"},
      {"shard", "torchrun --nproc-per-node 2 and more: weights and states are sharded"}}},
    {"layers_keep_what_they_computed",
     "every layer keeps its inputs and scores for the backward pass unless it computes them again",
     trained_by_megatron,
     {{either, 0.86,
       "nemo_automodel|nemo-automodel|nemo "
       "automodel|vlm_finetune/|llm_finetune/|pp_microbatch_size|packed_sequence_size"},
      {either, 0.82, "megatron-lm|megatron_lm|pretrain_gpt.py|megatron/training"},
      {log, 0.85, "attn_implementation: eager|attention-score tensor"}},
     {{"checkpointing",
       "distributed.activation_checkpointing: true (NeMo Automodel), --recompute-granularity full --recompute-method "
       "uniform --recompute-num-layers 1 (Megatron-LM)",
       {},
       System::unknown,
       "activation_checkpointing: true|--recompute-granularity full"},
      {"micro-batch",
       "local_batch_size: 1, in pipelines pp_microbatch_size: <half> (NeMo Automodel), --micro-batch-size 1 "
       "(Megatron-LM)"},
      {"sequence-length", "shorter rows: half of seq_length (packed_sequence_size, --seq-length)"},
      {"shard", "--use-distributed-optimizer, --tensor-model-parallel-size 2 --sequence-parallel (Megatron-LM)"}}},
};

}  // namespace

std::span<const Situation> toolbox_situations() { return kSituations; }

}  // namespace headroom::doctor
