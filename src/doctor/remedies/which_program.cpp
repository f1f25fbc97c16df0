#include "doctor/remedies/which_program.h"

#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

struct ProgramWords {
  std::string_view name;
  std::string_view writes;  // only this program writes or takes these
  std::string_view names;   // its names
};
constexpr ProgramWords kPrograms[] = {
    {"torch7", "luajit|luarocks|cutorch|torch/install/bin/th|.lua:|.lua$", "torch7|torch 7|lua torch"},
    {"darknet", "./darknet|darknet detector|darknet classifier|darknet.exe|dark_cuda.c|src/cuda.c:|subdivisions",
     "darknet"},
    {"caffe2", "context_gpu.cu|caffe2::|caffe2.python|from caffe2|import caffe2", "caffe2"},
    {"caffe",
     "error == cudasuccess (2 vs. 0)|syncedmem|.prototxt|import caffe$|caffe.cpp|caffe train|caffe::|libcaffe|pycaffe|"
     "tools/caffe",
     "caffe$"},
    {"mxnet", "pooled_storage_manager|src/storage/|import mxnet|mxnet.base|mx.gpu(|mx.nd.|dmlc-core",
     "mxnet|gluoncv|gluonnlp"},
    {"theano", "theano.|theano_flags|gpuarray|pygpu|lib.cnmem|using theano backend|.theanorc", "theano|lasagne"},
};
// PyTorch's own libraries carry Caffe2's name, and its models that of Darknet.
constexpr std::string_view kPyTorch = "pytorch|torch.|import torch|/torch/";
// Beside one of these a bare name says nothing: models and weights carry the names of programs ("darknet53").
constexpr std::string_view kPresent =
    "pytorch|torch|transformers|diffusers|lightning|accelerate|deepspeed|tensorflow|keras|tf.|paddle|jax|ultralytics|"
    "mmdet|detectron2";

OtherProgram shown_by(std::string_view text, std::string_view ProgramWords::*words) {
  for (const ProgramWords& program : kPrograms)
    if (const std::string_view word = any_word(text, program.*words); !word.empty()) return {program.name, word};
  return {};
}

}  // namespace

OtherProgram other_program(const std::string& log, const std::string& setup) {
  const bool pytorch = !any_word(log, kPyTorch).empty() || !any_word(setup, kPyTorch).empty();
  for (const std::string* text : {&log, &setup})
    if (const OtherProgram shown = shown_by(*text, &ProgramWords::writes); !shown.name.empty())
      if (!pytorch || shown.name == "torch7") return shown;
  if (!any_word(log, kPresent).empty() || !any_word(setup, kPresent).empty()) return {};
  for (const std::string* text : {&log, &setup})
    if (const OtherProgram named = shown_by(*text, &ProgramWords::names); !named.name.empty()) return named;
  return {};
}

bool is_other_program(std::string_view name) {
  for (const ProgramWords& program : kPrograms)
    if (program.name == name) return true;
  return false;
}

}  // namespace headroom::doctor
