#include "doctor/messages/recognisers.h"

namespace headroom::doctor {

std::vector<Recogniser> all_recognisers() {
  std::vector<Recogniser> table;
  add_vllm_recognisers(table);  // before PyTorch: vLLM wraps some of its errors in its own text
  add_server_recognisers(table);
  add_ggml_recognisers(table);
  add_library_recognisers(table);
  add_host_recognisers(table);
  add_xla_recognisers(table);
  add_tensorflow_recognisers(table);
  add_torch_other_recognisers(table);
  add_torch_recognisers(table);
  add_cuda_library_recognisers(table);
  return table;
}

}  // namespace headroom::doctor
