// The command of the failed program, where its log prints it.
#pragma once

#include <string>
#include <vector>

namespace headroom::doctor {

// The words of a command that a server prints with its arguments ("args: Namespace(model='...', ...)" of vLLM,
// "server_args=ServerArgs(...)" of SGLang), a launcher as a list ("['python', '-u', 'train.py', ...]"), or somebody
// typed as a line of its own with options ("$ torchrun --nproc_per_node 4 train.py --bf16"). Empty when the log has
// none.
std::vector<std::string> command_in_log(const std::string& log);

}  // namespace headroom::doctor
