/* Browsers start no workers for pages that are read from files. There, this class runs a worker's script in a hidden frame
   instead, so that the search works without a web server. As with workers, messages are copies that arrive later. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = this.onerror = this.onmessageerror = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data: structuredClone(data) });
        setTimeout(() => this.emit(event));
      };
      const script = inside.document.createElement("script");
      script.src = url;
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.send(data));
      };
      script.onerror = () => this.emit(new Event("error"));
      inside.document.body.append(script);
    }

    emit(event) {
      this.dispatchEvent(event);
      const handler = this[`on${event.type}`];
      if (handler) handler.call(this, event);
    }

    postMessage(data) {
      const copy = structuredClone(data);
      if (this.waiting) this.waiting.push(copy);
      else this.send(copy);
    }

    send(data) {
      const inside = this.frame.contentWindow;
      if (inside) setTimeout(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
