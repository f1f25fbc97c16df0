// What the words of a log and of a command show of the program itself: that it only infers, its framework, its inputs.
#pragma once

#include <string>
#include <string_view>

#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {

// All texts in lower case.

// The word that shows a program that only infers or serves (a user interface, a chat, a recogniser), where nothing says
// that it trains; empty otherwise.
std::string_view plain_inference(const std::string& log, const std::string& setup, const Story& story);
// "paddle" or "tensorflow" where the text names it, or a program of it, and does not name PyTorch; else empty.
std::string_view named_framework(const std::string& log, const std::string& setup);
// The text has PyTorch's name, a library built on it, code of it, or its message.
bool speaks_of_pytorch(std::string_view text);
// The word that shows that the inputs are recordings; empty where none does.
std::string_view speech_word(std::string_view log);
// The word that shows Windows without WSL; empty where none does.
std::string_view windows_word(std::string_view log);
// The text prints a version of PyTorch before 2.0.
bool prints_torch_1(std::string_view log);
// Whether a remedy's text is code or an option of PyTorch, or of a library built on it.
bool written_for_pytorch(std::string_view set);

}  // namespace headroom::doctor
