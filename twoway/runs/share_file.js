(() => {
  // A tar archive's plain files, by EXPERIMENT/RUN/NAME. A PAX header gives the next file's name.
  const filesOf = (bytes) => {
    const text = (from, length) =>
      new TextDecoder().decode(bytes.subarray(from, from + length)).replace(/\0.*$/s, "");
    const files = new Map();
    let named = "";
    for (let at = 0; at + 512 <= bytes.length && bytes[at]; ) {
      const [size, prefix] = [parseInt(text(at + 124, 12), 8), text(at + 345, 155)];
      const content = bytes.subarray(at + 512, at + 512 + size);
      if (text(at + 156, 1) === "x") named = text(at + 512, size).match(/ path=(.*)\n/)?.[1] || "";
      else {
        files.set(named || (prefix && `${prefix}/`) + text(at, 100), content);
        named = "";
      }
      at += 512 + Math.ceil(size / 512) * 512;
    }
    return files;
  };

  const unpacked = async () => {
    const packed = document.getElementById("twoway-runs").textContent;
    const blob = await (await fetch("data:application/gzip;base64," + packed)).blob();
    const stream = blob.stream().pipeThrough(new DecompressionStream("gzip"));
    return filesOf(new Uint8Array(await new Response(stream).arrayBuffer()));
  };

  let files;
  document.addEventListener("click", async (event) => {
    const address = event.target.closest?.("a[href]")?.getAttribute("href");
    const path = address && decodeURIComponent(address).match(/[^/]+\/[^/]+\/[^/]+\.html$/)?.[0];
    if (!path) return;
    event.preventDefault();
    const page = (await (files ??= unpacked())).get(path);
    if (page) location.assign(URL.createObjectURL(new Blob([page], {type: "text/html"})));
  });
})();
