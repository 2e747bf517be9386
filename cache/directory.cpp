#include <jitsmith/cache/directory.hpp>

#include <jitsmith/cache/names.hpp>
#include <jitsmith/cache/private_file.hpp>
#include <jitsmith/cache/trusted_path.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <span>

namespace jitsmith {
namespace {

constexpr const char* k_tag_name = "CACHEDIR.TAG";
constexpr std::string_view k_tag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Compiled kernels of jitsmith. They can be removed at any time and will be made again.\n"
    "# For information about cache directory tags, see https://bford.info/cachedir/\n";

struct Step {
  Descriptor directory;
  std::string problem;  // a predicate for "the cache directory X ..."; empty when all is well
  int error = 0;        // the errno behind the problem, if there is one
};

Step enter_private(FileSystem& fs, int parent, const std::string& name, IfMissing if_missing) {
  PrivateDirectory opened = open_private_directory(fs, parent, name.c_str(), if_missing);
  if (opened.error == ENOTDIR || opened.error == ELOOP) {
    return {{}, fmt::format("cannot be used because {} is a symbolic link or not a directory", name)};
  }
  if (opened.error != 0) return {{}, cannot_open(name, opened.error, if_missing), opened.error};
  if (opened.vetting != Vetting::trusted) {
    return {{},
            fmt::format("cannot be trusted because {} {} (only you may own and write it)", name,
                        describe(opened.vetting))};
  }
  return {std::move(opened.directory), {}};
}

Step enter_root(FileSystem& fs, const DirectoryChoice& choice, IfMissing if_missing) {
  TrustedParent parent = open_trusted_parent(fs, choice.base, choice.below, if_missing);
  if (!parent.problem.empty()) return {{}, std::move(parent.problem), parent.error};
  return enter_private(fs, parent.directory.get(), parent.name, if_missing);
}

void write_tag(FileSystem& fs, int root) {
  struct ::stat stat {};
  if (fs.stat_at(root, k_tag_name, stat) != -ENOENT) return;
  // Only a courtesy to backup programs: that it cannot be written changes nothing. Under its own name at
  // once, for nobody sweeps temporary files in this folder.
  const Descriptor tag(fs, fs.open_at(root, k_tag_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (tag.is_open() && fs.change_mode(tag.get(), 0600) == 0)
    fs.write_full(tag.get(), std::as_bytes(std::span(k_tag)));
}

}  // namespace

std::string_view to_string(DirectoryStatus status) {
  switch (status) {
    case DirectoryStatus::usable:
      return "usable";
    case DirectoryStatus::read_only:
      return "read-only";
    case DirectoryStatus::off:
      return "off";
  }
  return "unknown";
}

Directory open_directory(FileSystem& fs, const DirectoryRequest& request, IfMissing if_missing) {
  const DirectoryChoice choice = choose_directory(request);
  if (!choice.reason.empty()) return {{DirectoryStatus::off, {}, choice.reason}, {}};
  const std::string path = choice.path();
  const auto sentence = [&](std::string_view problem) {
    return fmt::format("the cache directory {} (from {}) {}; {}", path, choice.origin, problem,
                       choice.remedy);
  };

  const auto off = [&](const Step& step) {
    const bool is_missing = if_missing == IfMissing::fail && step.error == ENOENT;
    const std::string reason = is_missing ? fmt::format(
                                                "the cache directory {} (from {}) does not exist; store a "
                                                "kernel to make it, or {}",
                                                path, choice.origin, choice.remedy)
                                          : sentence(step.problem);
    return Directory{{DirectoryStatus::off, path, reason}, {}, is_missing};
  };

  const Step root = enter_root(fs, choice, if_missing);
  if (!root.problem.empty()) return off(root);
  Step entries = enter_private(fs, root.directory.get(), k_format_folder, if_missing);
  if (!entries.problem.empty()) return off(entries);

  if (const int result = fs.check_writable(entries.directory.get()); result < 0) {
    const std::string problem =
        fmt::format("cannot be written ({}), so it is only read", std::strerror(-result));
    return {{DirectoryStatus::read_only, path, sentence(problem)}, std::move(entries.directory)};
  }
  if (if_missing == IfMissing::create) write_tag(fs, root.directory.get());
  return {{DirectoryStatus::usable, path, {}}, std::move(entries.directory)};
}

}  // namespace jitsmith
