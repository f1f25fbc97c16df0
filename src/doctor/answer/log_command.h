// Finds the command of the failed program in its log.
#pragma once

#include <string>
#include <vector>

namespace headroom::doctor {

// The words of the command, from one of: the arguments that a server prints ("args: Namespace(model='...', ...)" of
// vLLM, "server_args=ServerArgs(...)" of SGLang), a list that a launcher prints ("['python', '-u', 'train.py', ...]"),
// or a typed line with options ("$ torchrun --nproc_per_node 4 train.py --bf16"). Empty when the log has none of them.
std::vector<std::string> command_in_log(const std::string& log);

}  // namespace headroom::doctor
