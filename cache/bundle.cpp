#include <jitsmith/cache/bundle.hpp>

#include <jitsmith/cache/names.hpp>
#include <jitsmith/cache/private_file.hpp>
#include <jitsmith/cache/trusted_path.hpp>
#include <jitsmith/cache/whole_file.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <utility>
#include <vector>

namespace jitsmith {
namespace {

struct Problem {
  std::string what;  // a predicate for "the bundle X ..."
  std::string_view remedy;
};

constexpr std::string_view k_leave_out = "correct the path, or take it out of the list of bundles";
constexpr std::string_view k_make_trusted =
    "it must be a directory or a regular file that root or you own and nobody else can write";
constexpr std::string_view k_make_again = "make it again with `jitsmith cache export` of this version";
constexpr std::string_view k_make_readable = "make it readable, or take it out of the list of bundles";

Problem cannot_be_read(int error) {
  return {fmt::format("cannot be read ({})", message_of_errno(error)), k_make_readable};
}

Problem untrusted(std::string_view why) {
  return {fmt::format("cannot be trusted because it {}", why), k_make_trusted};
}

// What is at a path, judged by its descriptor.
struct Opened {
  Descriptor file;
  struct ::stat stat {};
  std::optional<Problem> problem;
};

Opened refuse(Problem problem) {
  return {{}, {}, std::move(problem)};
}

Opened open_vetted(FileSystem& fs, const std::string& path) {
  // A hidden end would have another path opened than the one that is told of.
  if (!path.starts_with('/') || path.find('\0') != std::string::npos)
    return refuse({"is not named by an absolute path", "bundles are: give the whole path, from / on"});
  const TrustedParent parent = open_trusted_parent(fs, "/", path.substr(1), IfMissing::fail);
  if (parent.error == ENOENT) return refuse({"does not exist", k_leave_out});
  if (!parent.problem.empty()) return refuse({parent.problem, k_leave_out});

  Opened opened;
  // O_NONBLOCK: opening a planted FIFO must not wait for a writer.
  opened.file = Descriptor(
      fs, fs.open_at(parent.directory.get(), parent.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  const int error = opened.file.error();
  if (error == ENOENT) return refuse({"does not exist", k_leave_out});
  if (error == ELOOP) return refuse(untrusted("is a symbolic link"));
  if (error == ENXIO) return refuse(untrusted("is neither a directory nor a regular file"));  // a socket
  if (error != 0) return refuse(cannot_be_read(error));
  if (const int result = fs.stat(opened.file.get(), opened.stat); result < 0)
    return refuse(cannot_be_read(-result));
  const bool is_directory = S_ISDIR(opened.stat.st_mode);
  const Vetting vetting = vet(opened.stat, is_directory ? S_IFDIR : S_IFREG);
  if (vetting == Vetting::wrong_type) return refuse(untrusted("is neither a directory nor a regular file"));
  if (vetting != Vetting::trusted) return refuse(untrusted(describe(vetting)));
  return opened;
}

// The folder of entries in a cache directory.
std::optional<Problem> open_entries(FileSystem& fs, int directory, Descriptor& entries) {
  PrivateDirectory opened = open_private_directory(fs, directory, k_format_folder, IfMissing::fail);
  if (opened.error == ENOENT) {
    return Problem{fmt::format("is a directory without {}, so it is not a cache directory of this version",
                               k_format_folder),
                   k_leave_out};
  }
  if (opened.error == ENOTDIR || opened.error == ELOOP) {
    return Problem{
        fmt::format("cannot be used because its {} is a symbolic link or not a directory", k_format_folder),
        k_make_trusted};
  }
  if (opened.error != 0) return cannot_be_read(opened.error);
  if (opened.vetting != Vetting::trusted) {
    return Problem{
        fmt::format("cannot be trusted because its {} {}", k_format_folder, describe(opened.vetting)),
        k_make_trusted};
  }
  entries = std::move(opened.directory);
  return std::nullopt;
}

std::optional<Problem> read_index(FileSystem& fs, const Opened& opened, std::vector<BundleSlot>& slots) {
  const auto file_bytes = static_cast<std::uint64_t>(opened.stat.st_size);
  const auto read = [&](std::vector<std::byte>& head) -> std::optional<Problem> {
    const ssize_t got = fs.read_full_at(opened.file.get(), head, 0);
    if (got < 0) return cannot_be_read(static_cast<int>(-got));
    head.resize(static_cast<std::size_t>(got));
    return std::nullopt;
  };
  std::vector<std::byte> head(k_bundle_header_bytes);
  if (auto problem = read(head)) return problem;
  // An index that is longer than the file is not made room for.
  if (const auto end = bundle_index_end(head); end && *end <= file_bytes) {
    head.resize(static_cast<std::size_t>(*end));
    if (auto problem = read(head)) return problem;
  }
  DecodedBundleIndex index = decode_bundle_index(head, file_bytes);
  if (!index.problem.empty()) return Problem{std::move(index.problem), k_make_again};
  slots = std::move(index.slots);
  return std::nullopt;
}

}  // namespace

Bundle::Bundle(const CacheContext& context, const std::string& path) : state_{path, false, {}} {
  FileSystem& fs = context.file_system;
  Opened opened = open_vetted(fs, path);
  if (!opened.problem && S_ISDIR(opened.stat.st_mode)) {
    Descriptor entries;
    opened.problem = open_entries(fs, opened.file.get(), entries);
    if (!opened.problem)
      directory_ = std::make_unique<Store>(context, std::move(entries), StoreAccess::read_only);
  } else if (!opened.problem) {
    std::vector<BundleSlot> slots;
    opened.problem = read_index(fs, opened, slots);
    if (!opened.problem)
      file_ = std::make_unique<BundleFile>(context, std::move(opened.file), std::move(slots),
                                           modification_time(opened.stat), path);
  }
  state_.usable = !opened.problem;
  if (opened.problem)
    state_.reason = fmt::format("the bundle {} {}; {}", path, opened.problem->what, opened.problem->remedy);
}

std::optional<Entry> Bundle::get(std::string_view key_text, const Digest& digest) {
  if (directory_) return directory_->get(key_text, digest);
  if (file_) return file_->get(key_text, digest);
  return std::nullopt;
}

void Bundle::list(const EntryVisitor& visit) const {
  if (directory_) directory_->list(visit);
  if (file_) file_->list(visit);
}

}  // namespace jitsmith
